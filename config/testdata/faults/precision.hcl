job {
  embedded_server { clients = 3 }
  auth "none" {}
}
program { command = ["../bin/prog"] }
site "alpha" {
  client = 0
  host {
    address = "127.0.0.2"
    procs   = 2
  }
  route "alpha" { precision { double = "float" } }
  route "beta" {
    representation = "external32"
    precision { double = "float" }
  }
  route "lam" { precision { double = "float" } }
}
site "beta" {
  client = 1
  host {
    address = "127.0.0.3"
    procs   = 2
  }
  route "alpha" { precision { double = "half" } }
  route "*" { precision {} }
}
site "lam" {
  client  = 2
  foreign = true
}
