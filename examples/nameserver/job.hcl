# The server and its clients are procs of two sites of this machine.
#
#   make build && bin/impi-node -config examples/nameserver/job.hcl
job { embedded_server {} }

program { command = ["../../bin/nameserver"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 3 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
