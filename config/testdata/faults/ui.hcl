# The page is at an address that only this machine reaches.
job {
  embedded_server {}
  auth "none" {}
}

ui {}

site "alpha" {
  client = 0
  host {
    address = "127.0.0.1"
    procs   = 1
  }
  program { command = ["true"] }
  ui { listen = "0.0.0.0:9480" }
}

site "beta" {
  client = 1
  host {
    address = "127.0.0.2"
    procs   = 1
  }
  program { command = ["true"] }
  ui { listen = "localhost:9480" }
}

site "gamma" {
  client = 2
  host {
    address = "127.0.0.3"
    procs   = 1
  }
  program { command = ["true"] }
  ui { listen = "127.0.0.1:9480" }
}

site "delta" {
  client = 3
  host {
    address = "127.0.0.4"
    procs   = 1
  }
  program { command = ["true"] }
  ui { listen = "127.0.0.1:9480" }
}
