job {
  embedded_server {}
  auth "none" {}
}
program { command = ["../bin/prog"] }
hosts = "127.0.0.[2-5]"
procs = 2
site "a" {
  client = 0
  hosts  = "127.0.0.[2-5"
  procs  = 2
}
site "b" {
  client = 1
  hosts  = "127.0.0.[6-8]"
  host {
    address = "127.0.0.7"
    procs   = 1
  }
}
site "c" {
  client = 2
  procs  = 2
  host {
    address = "127.0.0.9"
    procs   = 1
  }
}
site "d" {
  client = 3
  hosts  = "127.0.0.1[0-9],10.0.0.[250-256]"
  procs  = 0
}
site "e" {
  client = 4
  hosts  = ["127.0.0.20"]
  procs  = 1
}
site "f" {
  client = 5
  hosts  = "10.[1-99].[1-99].1"
  procs  = 1
}
site "g" {
  client  = 6
  foreign = true
  hosts   = "127.0.0.30"
}
site "h" {
  client = 7
  hosts { address = "127.0.0.31" }
}
site "i" {
  client = 8
  hosts  = "127.0.0.40"
  procs  = "all"
}
