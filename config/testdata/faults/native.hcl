job {
  embedded_server {}
  auth "none" {}
}
program {
  command = ["../bin/prog"]
  bind    = "core"
}
transport "native" { plugin = "impi-transport-x" }
route "b" { prefer = ["native", "tcp"] }
site "a" {
  client = 0
  host { address = "127.0.0.2"  procs = 1 }
  native {
    mpicc  = "./no/mpicc"
    launch = ["mpirun", "-n", "{proc}", "{hostfile}"]
  }
  route "*" { require_tls = true }
  spawn { slots = 2 }
}
site "b" {
  client = 1
  host { address = "127.0.0.3"  procs = 1 }
  host { address = "127.0.0.4"  procs = "auto" }
  native { shim = "no.so" }
  route "b" {
    prefer     = ["native"]
    data_plane = ["fd"]
  }
}
site "c" {
  client = 2
  host { address = "127.0.0.5"  procs = 1 }
  route "c" { prefer = ["native"] }
}
