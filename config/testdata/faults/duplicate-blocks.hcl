site "alpha" {
  client = 0
  embedded_server {}
  host {
    address = "127.0.0.1"
    procs   = 1
  }
  route "*" {}
  route "*" {}
  log {}
  log {}
}
transport "tcp" {}
transport "tcp" {}
program { command = ["../bin/prog"] }
