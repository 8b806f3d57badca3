job { embedded_server {} }
program { command = ["../bin/prog"] }
site "a" {
  client = 0
  auth "keys" { file = "../job.key" }
  auth "none" { file = "../job.key" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "b" {
  client = 1
  auth "key" {
    file = "../job.key"
    env  = "JOB_KEY"
  }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "c" {
  client = 2
  auth "key" {}
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "d" {
  client = 3
  auth "key" { env = "NO_SUCH_KEY" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "e" {
  client = 4
  auth "key" { env = "HOST_ADDRESS" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "f" {
  client = 5
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
