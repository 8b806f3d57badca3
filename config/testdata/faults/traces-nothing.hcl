job { embedded_server {} }
program { command = ["../bin/prog"] }
trace {}
site "alpha" {
  client = 0
  auth "none" {}
  host {
    address = "127.0.0.2"
    procs   = 1
  }
}
