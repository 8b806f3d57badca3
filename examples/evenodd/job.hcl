# Pairs of neighbours of two sites of this machine; the last of five ranks is alone.
#
#   make build && bin/impi-node -config examples/evenodd/job.hcl
job { embedded_server {} }

program { command = ["../../bin/evenodd"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 3 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
