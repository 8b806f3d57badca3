# A token goes round the procs of two sites of this machine.
#
#   make build && bin/impi-node -config examples/ring/job.hcl
job { embedded_server {} }

program { command = ["../../bin/ring", "-rounds", "1000"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
