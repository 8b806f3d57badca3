site "alpha" {
  client  = 0
  clients = 2
  embedded_server { adress = "127.0.0.1:0" }
  host {
    address = "127.0.0.1"
    procs   = 2
    procz   = 2
  }
}
program { command = ["../bin/prog"] }
timeout = "60s"
colour = "blue"
