job {
  embedded_server {}
  auth "none" {}
}
program { command = ["../bin/prog"] }
site "a" {
  client = 0
}
site "lam" {
  client  = 1
  foreign = true
  server  = "127.0.0.1:7800"
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
