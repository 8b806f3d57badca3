# One site of a job whose other sites have files of their own.
site "alpha" {
  client = 0                          # IMPI client rank
  server = "127.0.0.1:7800"           # or: embedded_server { clients = 2 }
  auth "key" { file = "job.key" }     # or: auth "none" {}
}
host    { address = "127.0.0.2"  procs = 4 }
program { command = ["./bin/prog", "--rounds", "1000"] }
plugin_dir = "bin"

transport "tcp"  {}
transport "quic" {
  plugin = "impi-transport-x"
  sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  config { cert = "site.pem"  key = "site.key"  ca = "job-ca.pem" }
}
route "beta" { prefer = ["quic", "tcp"]  require_tls = true }
route "*"    { prefer = ["unix", "tcp"] }
log { level = "info"  format = "text" }
