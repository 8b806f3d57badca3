site "alpha" {
  client = 0
  embedded_server {}
  hosts { address = "127.0.0.1" }
  host { address = "127.0.0.1"  procs = 2 }
}
program { command = ["../bin/prog"] }
furniture {}
