# Nine procs on two sites of this machine.
#
#   make build && bin/impi-node -config examples/safety/job.hcl
job { embedded_server {} }

program { command = ["../../bin/safety"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 5 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 4 }
}
