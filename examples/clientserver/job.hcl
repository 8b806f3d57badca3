# Two servers on one site of this machine, clients on both.
#
#   make build && bin/impi-node -config examples/clientserver/job.hcl
job { embedded_server {} }

program { command = ["../../bin/clientserver"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 3 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 3 }
}
