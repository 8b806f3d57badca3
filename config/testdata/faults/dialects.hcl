job { embedded_server {} }
program { command = ["../bin/prog"] }
site "a" {
  client = 0
  protocol {
    dialect  = "draft-1999"
    versions = ["0.0", "0.65537"]
    omit     = ["C_DATALEN", "H_ACKMARK"]
    datalen  = 100
  }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "b" {
  client = 1
  protocol { dialect = "draft-1998" }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "c" {
  client = 2
  protocol {
    ipv4     = "mappped"
    versions = ["0.0", "1.0", "0.5"]
    omit     = ["C_NHOSTS"]
  }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "d" {
  client = 3
  protocol { versions = ["0.1"] }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "e" {
  client = 4
  protocol { versions = ["0.0", "one"] }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
