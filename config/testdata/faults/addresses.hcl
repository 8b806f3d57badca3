site "alpha" {
  client = 0
  server = "node7..example.org:7800"
  auth "none" {}
  host {
    address = "node7.example.org:7801"
    procs   = 1
  }
  host {
    address = "127.0.0.256"
    procs   = 1
  }
  host {
    address = "0.0.0.0"
    procs   = 1
  }
  host {
    address = "224.0.0.1"
    procs   = 1
  }
  host {
    address = "127.0.0.1:80"
    procs   = 0
  }
}
program { command = ["../bin/prog"] }
