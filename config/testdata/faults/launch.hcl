job { embedded_server {} }
program { command = ["./ring"] }
site "a" {
  client = 0
  host { address = "127.0.0.2"  procs = 1 }
  launch "slrm" {}
}
site "b" {
  client = 1
  host { address = "127.0.0.3"  procs = 1 }
  launch "exec" { mpi = "none" }
}
site "c" {
  client = 2
  launch "ssh" {}
}
site "d" {
  client = 3
  hosts  = "127.0.0.5"
  procs  = 1
  launch "exec" { command = ["rsh", "--"] }
}
site "e" {
  client = 4
  hosts  = "127.0.0.6,127.0.0.6"
  procs  = 1
  launch "slurm" {}
}
site "f" {
  client = 5
  hosts  = "127.0.0.7"
  procs  = 1
  launch "exec" { command = ["kubectl", "-n", "team", "exec", "{name}", "-c", "app", "--"] }
}
