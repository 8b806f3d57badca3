job {
  embedded_server {}
  auth "none" {}
}
program { command = ["../bin/prog"] }
site "a" {
  client         = 0
  implementation = "lam-7.1"
  representation = "native-le"
  channels_from  = ["127.0.0.1"]
}
site "lam" {
  client  = 1
  foreign = true
  server  = "127.0.0.1:7800"
  implementation = "lam"
  channels_from  = ["127.0.0.1", "lam.example.org"]
  host {
    address = "127.0.0.1"
    procs   = 1
  }
}
