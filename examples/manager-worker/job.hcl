# The manager is the proc of alpha. It spawns two workers at each site; the file of a
# site says that and what others may spawn there.
#
#   make build && bin/impi-node -config examples/manager-worker/job.hcl
job { embedded_server {} }

program { command = ["../../bin/manager-worker", "-sites", "alpha,beta", "-png", "../../bin/mandelbrot.png"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 1 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 1 }
  spawn {
    slots = 2
    allow = ["../../bin/manager-worker"]
  }
}
