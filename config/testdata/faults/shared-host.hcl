job { embedded_server {} }
program { command = ["../bin/prog"] }
host {
  address = "127.0.0.1"
  procs   = 1
}
site "a" {
  client = 0
}
site "b" {
  client = 1
}
