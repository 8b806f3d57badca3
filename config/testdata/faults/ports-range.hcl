# Ranges of ports, and ports that are in them.
job {
  embedded_server { listen = "10.0.0.1:7805" }
  auth "none" {}
}

ports   = "7800-7899"
program { command = ["true"] }

site "alpha" {
  client = 0
  head   = "10.0.0.1:7807"
  host {
    address = "10.0.0.1"
    procs   = 1
    port    = 7808
  }
  host {
    address = "10.0.0.2"
    procs   = 1
  }
  metrics { listen = "0.0.0.0:7806" }
  ui { listen = "127.0.0.1:7809" }
}

site "beta" {
  client = 1
  ports  = "7899-7900"
  host {
    address = "10.0.0.1"
    procs   = 1
  }
}

site "gamma" {
  client = 2
  ports  = "8000-8000"
  hosts  = "10.0.0.[3-4]"
  procs  = 1
}

site "delta" {
  client = 3
  ports  = "9-8"
  host {
    address = "10.0.0.5"
    procs   = 1
  }
}
