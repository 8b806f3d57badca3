trace { calls = "calls.json" }
program { command = ["true"] }
site "alpha" {
  client = 0
  host {
    address = "127.0.0.1"
    procs   = 2
  }
}
job { embedded_server {} }
