# What rank 0 reads from standard input goes to the procs of two sites of this machine.
#
#   make build && bin/impi-node -config examples/bcastinput/job.hcl
job { embedded_server {} }

program { command = ["../../bin/bcastinput"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
