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
  route "lam" { compress { level = 1 } }
  route "beta" {
    compress {
      algorithm = "lz4"
      level     = 20
      min       = "4KiB"
      window    = 1
    }
  }
}
site "beta" {
  client = 1
  host {
    address = "127.0.0.3"
    procs   = 2
  }
  route "alpha" { compress = "zstd" }
  route "*" {
    compress "zstd" {}
    compress { level = 1 }
    compress {}
  }
}
site "lam" {
  client  = 2
  foreign = true
}
