program { command = ["../bin/prog"] }
site "a" {
  client = 0
  server = "127.0.0.1:7800"
  embedded_server {
    listen  = "127.0.0.1:7801"
    clients = 1
  }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "b" {
  client = 1
  server = "127.0.0.1:7800"
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
