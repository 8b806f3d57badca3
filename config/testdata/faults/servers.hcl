job {
  server = "127.0.0.1:7800"
  embedded_server { clients = 3 }
}
program { command = ["../bin/prog"] }
site "a" {
  client = 0
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "b" {
  client = 1
  embedded_server {}
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
