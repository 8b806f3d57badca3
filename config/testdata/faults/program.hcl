job { embedded_server {} }
site "a" {
  client = 0
  program { command = ["../bin/no-such-program"] }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "b" {
  client = 1
  program {
    command = ["../bin/not-executable", "x"]
    dir     = "no-such-folder"
  }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "c" {
  client = 2
  program {
    command = ["no-such-program-in-path"]
    dir     = "program.hcl"
  }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "d" {
  client = 3
  program {
    command = ["../bin"]
    stdin   = 6
  }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "e" {
  client = 4
  program { command = [] }
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
site "f" {
  client = 5
  program {}
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
