# Two sites of this machine compute pi together.
#
#   make build && bin/impi-node -config examples/pi/job.hcl
job { embedded_server {} }

program { command = ["../../bin/pi", "-intervals", "20000000"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
