# How the server is spoken to, where no server is, or in two ways.
job {
  require_tls = true
  embedded_server {
    listen      = "127.0.0.1:7800"
    require_tls = false
  }
}
program { command = ["cat"] }
site "alpha" {
  client         = 0
  server_foreign = true
  host {
    address = "127.0.0.2"
    procs   = 1
  }
  auth "none" {}
}
site "beta" {
  client         = 1
  server         = "127.0.0.1:7800"
  server_foreign = true
  require_tls    = true
  host {
    address = "127.0.0.3"
    procs   = 1
  }
  auth "none" {}
}
site "lam" {
  client      = 2
  foreign     = true
  require_tls = true
}
