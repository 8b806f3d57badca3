site "alpha" {
  client = 0
  embedded_server {}
}
host {
  address = "192.0.2.1"
  procs   = 1
}
program { command = ["../bin/prog"] }
