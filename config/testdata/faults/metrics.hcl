# Figures are served at an address of this machine.
job {
  embedded_server {}
  auth "none" {}
}

metrics { calls = true }

site "alpha" {
  client = 0
  host {
    address = "127.0.0.1"
    procs   = 1
  }
  program { command = ["true"] }
  metrics { listen = "node-1.example:9464" }
}

site "beta" {
  client = 1
  host {
    address = "127.0.0.2"
    procs   = 1
  }
  program { command = ["true"] }
  metrics {
    listen = "127.0.0.1"
    port   = 9464
  }
}

site "gamma" {
  client = 2
  host {
    address = "127.0.0.3"
    procs   = 1
  }
  program { command = ["true"] }
  metrics { listen = "0.0.0.0:9464" }
}

site "delta" {
  client = 3
  host {
    address = "127.0.0.4"
    procs   = 1
  }
  program { command = ["true"] }
  metrics { listen = "0.0.0.0:9464" }
}

site "epsilon" {
  client = 4
  host {
    address = "127.0.0.5"
    procs   = 1
  }
  program { command = ["true"] }
}
