job { embedded_server {} }
program { command = ["../bin/prog"] }
site "alpha" {
  client = 0
  host { 
    address = "127.0.0.2"
    procs = 2
  }
}
site "beta" {
  client = 0
  host { 
    address = "127.0.0.3"
    procs = 2
  }
}
site "gamma" {
  client = 5
  host { 
    address = "127.0.0.4"
    procs = 2
  }
}
site "delta" {
  client = 32
  host { 
    address = "127.0.0.5"
    procs = 2
  }
}
