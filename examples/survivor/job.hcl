# Three sites with two procs each; the last site is lost in the middle of the job. With "-replace" in
# the command two procs are spawned in their place, and with "-replace", "-twice" one of these is lost
# and replaced, too.
#
#   make build && bin/impi-node -config examples/survivor/job.hcl
job {
  survive = true
  embedded_server {}
}

program { command = ["../../bin/survivor"] }

spawn { slots = 3 }

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
