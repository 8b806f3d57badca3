job { embedded_server {} }
program { command = ["../bin/prog"] }
trace {
  otlp  = "http://127.0.0.1:4318"
  short = "each"
}
site "alpha" {
  client = 0
  auth "none" {}
  host {
    address = "127.0.0.2"
    procs   = 1
  }
}
