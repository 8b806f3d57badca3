# The library's first rank is on one site of this machine, its partners on both.
#
#   make build && bin/impi-node -config examples/library2/job.hcl
job { embedded_server {} }

program { command = ["../../bin/library2"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
