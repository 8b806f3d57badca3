site "alpha" {
  client = 0
  embedded_server {}
}
host {
  address = "127.0.0.1"
  procs   = 1
}
program { command = ["../bin/prog"] }
plugin_dir = "../bin"
transport "tcp" { sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
transport "shn" {}
transport "Quic" { plugin = "impi-transport-x" }
transport "x" { plugin = "impi-transport-x" }
transport "y" { plugin = "impi-transport-y" }
transport "z" { plugin = "./impi-transport-x" }
transport "w" {
  plugin = "impi-transport-x"
  config {
    path { to = "nowhere" }
  }
}
transport "unix" { auto_mtls = false }
transport "v" {
  plugin = "impi-transport-x"
  env    = { IMPI_TRANSPORT_PLUGIN = "another" }
}
transport "u" {
  plugin = "impi-transport-x"
  env    = { "FI=PROVIDER" = "tcp" }
}
transport "t" {
  plugin = "impi-transport-x"
  env    = { SECRET = "a\u0000b" }
}
transport "s" {
  plugin = "impi-transport-x"
  env    = { "" = "nobody" }
}
transport "r" {
  plugin         = "impi-transport-x"
  confine        = false
  user_namespace = true
}
