# As job.hcl, with a spare site: it has no procs until the last site is lost, and then those that take
# its place.
#
#   make build && bin/impi-node -config examples/survivor/spare.hcl
job {
  survive = true
  embedded_server {}
}

program { command = ["../../bin/survivor", "-replace", "-spare", "delta"] }

spawn { allow = ["../../bin/survivor"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}

site "gamma" {
  client = 2
  host { address = "127.0.0.4"  procs = 2 }
}

site "delta" {
  spare = true
  host { address = "127.0.0.5"  procs = 2 }
}
