site "alpha" {
  client = "0"
  server = 7800
  host {
    address = ["127.0.0.1"]
    procs   = 2.5
    port    = 70000
  }
  program {
    command       = "../bin/prog"
    env           = ["A=1"]
    prefix_output = "yes"
    stdin         = null
  }
  route "*" {
    prefer         = ["tcp", 4]
    direct         = 1
    data_plane     = ["fd", "rings"]
    representation = "native-el"
  }
  protocol {
    datalen = 0
    tag_ub  = 100
    xsize   = -2
  }
  wait { spin = "20" }
  log {
    level  = "verbose"
    format = "jsn"
  }
  transport "tcp" {
    sha256 = "abc"
    config {
      backlog = { a = 1 }
      names   = ["a", 1]
    }
  }
}
limits {
  start = 60
  stop  = "-1s"
}
