job { embedded_server { listen = "127.0.0.2:7800" } }
program { command = ["../bin/prog"] }
site "alpha" {
  client = 0
  host {
    address = "127.0.0.2"
    port    = 7800
    procs   = 1
  }
  host {
    address = "127.0.0.2"
    port    = 7801
    procs   = 1
  }
}
site "beta" {
  client = 1
  host {
    address = "127.0.0.2"
    port    = 7801
    procs   = 1
  }
  host {
    address = "127.0.0.2"
    port    = 9
    procs   = 1
  }
  host {
    address = "127.0.0.2"
    port    = 10
    procs   = 1
  }
  host {
    address = "127.0.0.2"
    port    = 11
    procs   = 1
  }
  host {
    address = "127.0.0.2"
    port    = 12
    procs   = 1
  }
  host {
    address = "127.0.0.2"
    procs   = 1
  }
  host {
    address = "127.0.0.2"
    procs   = 1
  }
}
