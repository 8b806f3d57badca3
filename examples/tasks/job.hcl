# The procs of two sites of this machine take tasks from one counter.
#
#   make build && bin/impi-node -config examples/tasks/job.hcl
job { embedded_server {} }

program { command = ["../../bin/tasks"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
