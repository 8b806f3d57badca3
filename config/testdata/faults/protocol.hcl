job { embedded_server {} }
program { command = ["../bin/prog"] }
protocol {
  ackmark = 10
  xsize   = 1024
}
site "a" {
  client = 0
  protocol { hiwater = 9 }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "b" {
  client = 1
  protocol { ackmark = 300 }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "c" {
  client = 2
  protocol {
    xsize     = -1
    maxlinear = 8
  }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
