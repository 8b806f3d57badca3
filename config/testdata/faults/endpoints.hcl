job {
  server = "127.0.0.1"
  auth "none" {}
}
program { command = ["../bin/prog"] }
site "a" {
  client = 0
  server = "127.0.0.1:0"
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "b" {
  client = 1
  server = "::1:7800"
  host {
    address = "::1"
    procs   = 1
  }
}
site "c" {
  client = 2
  server = "0.0.0.0:7800"
  host {
    address = "::ffff:127.0.0.1"
    procs   = 1
  }
}
site "d" {
  client = 3
  server = "127.0.0.1:http"
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
