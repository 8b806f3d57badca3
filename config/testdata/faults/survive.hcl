job {
  embedded_server {}
  auth "none" {}
  survive = true
}
program { command = ["../bin/prog"] }
site "a" {
  client = 0
  host {
    address = "127.0.0.1"
    procs   = 1
  }
  native { mpicc = "../bin/prog" }
}
site "b" {
  client = 1
  hosts  = "127.0.0.[5-6]"
  procs  = 1
  launch "ssh" {}
}
site "lam" {
  client  = 2
  foreign = true
}
