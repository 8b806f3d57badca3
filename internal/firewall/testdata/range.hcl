job {
  embedded_server { listen = "10.0.0.1:0" }
  auth "none" {}
}

ports = "7800-7899"

transport "quic" {
  config {
    cert = "a.crt"
    key  = "a.key"
    ca   = "ca.crt"
  }
}

route "*" { prefer = ["quic"] }

metrics { listen = "0.0.0.0:0" }

program { command = ["true"] }

site "alpha" {
  client = 0
  hosts  = "10.0.0.[1-2]"
  procs  = 4
}

site "beta" {
  client = 1
  hosts  = "10.9.0.[1-2]"
  procs  = 4
  launch "ssh" {}
  transport "quic" {
    config {
      port_range = "9000-9009"
      cert       = "a.crt"
      key        = "a.key"
      ca         = "ca.crt"
    }
  }
}
