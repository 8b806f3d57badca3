# Each of the three groups has procs of two sites of this machine.
#
#   make build && bin/impi-node -config examples/ring3/job.hcl
job { embedded_server {} }

program { command = ["../../bin/ring3"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 3 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 3 }
}
