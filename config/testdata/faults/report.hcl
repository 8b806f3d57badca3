report { path = "job-%r.html" }
program { command = ["true"] }
site "alpha" {
  client = 0
  host {
    address = "127.0.0.1"
    procs   = 2
  }
  report { path = "a" }
}
job { embedded_server {} }
