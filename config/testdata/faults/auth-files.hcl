job {
  embedded_server {}
  auth "key" { file = "../open.key" }
}
program { command = ["../bin/prog"] }
site "a" {
  client = 0
  auth "key" { file = "../missing.key" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "b" {
  client = 1
  auth "key" { file = "../malformed.key" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "c" {
  client = 2
  auth "key" { file = "../long.key" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "d" {
  client = 3
  auth "key" { file = "../empty.key" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "e" {
  client = 4
  auth "key" { file = "../bin" }
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
site "f" {
  client = 5
  host {
    address = "127.0.0.1"
    procs = 1
  }
}
