job { embedded_server {} }
program { command = ["../bin/prog"] }
site "a" {
  client = 0
  auth "key" { env = "JOB_KEY" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "b" {
  client = 1
  auth "key" { env = "OTHER_KEY" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "c" {
  client = 2
  auth "none" {}
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
