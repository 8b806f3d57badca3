# The job has two procs at two sites; up to four more are spawned while it runs, beside
# rank 0.
#
#   make build && bin/impi-node -config examples/elastic/job.hcl
job { embedded_server {} }

program { command = ["../../bin/elastic"] }

spawn { slots = 4 }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 1 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 1 }
}
