program { command = ["../bin/prog"] }
site "a" {
  client = 0
  auth "none" {}
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
