site "alpha" {
  client = 0
  embedded_server {}
}
host {
  address = "127.0.0.1"
  procs   = 2
}
program { command = ["../bin/prog"] }
log { trace = "packets.txt" }
