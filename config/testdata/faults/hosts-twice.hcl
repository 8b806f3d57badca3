job { embedded_server { clients = 1 } }
program { command = ["../bin/prog"] }
hosts = "127.0.0.[2-5]"
procs = 2
site "a" {
  client = 0
  hosts  = "127.0.0.[2-5]"
}
