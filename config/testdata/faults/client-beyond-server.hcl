site "alpha" {
  client = 2
  embedded_server { clients = 2 }
  auth "none" {}
}
host {
  address = "127.0.0.1"
  procs   = 1
}
program { command = ["../bin/prog"] }
