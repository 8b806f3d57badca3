# The left group is on one site of this machine, the right group on both.
#
#   make build && bin/impi-node -config examples/firstofleft/job.hcl
job { embedded_server {} }

program { command = ["../../bin/firstofleft"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 3 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
