job {
  embedded_server { listen = "10.0.0.1:7800" }
  auth "none" {}
}

transport "quic" {
  config {
    cert = "a.crt"
    key  = "a.key"
    ca   = "ca.crt"
  }
}

transport "tcp" {
  config { port_range = "7900-7999" }
}

metrics { listen = "0.0.0.0:9464" }

program { command = ["true"] }

site "alpha" {
  client = 0
  hosts  = "10.0.0.[1-2]"
  procs  = 4
}

site "beta" {
  client = 1
  host {
    address = "2001:db8::5"
    procs   = 4
    port    = 7801
  }
  route "alpha" {
    prefer = ["tcp"]
  }
}

site "gamma" {
  client = 2
  host {
    address = "10.9.0.1"
    procs   = 1
  }
  route "*" { direct = false }
  transport "tcp" {}
  metrics { listen = "127.0.0.1:0" }
}

site "lam" {
  client         = 3
  foreign        = true
  implementation = "lam-7.1"
}
