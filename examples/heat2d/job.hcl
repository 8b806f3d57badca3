# Heat flows over a circuit board that two sites share. Run it from anywhere:
#
#   make build && bin/impi-node -config examples/heat2d/job.hcl
#
# Both sites are on this machine, on two addresses of the loopback network.
job { embedded_server {} }

program {
  command = ["../../bin/heat2d", "-verify"]
  dir     = "../.." # the pictures go to out/ at the top of the repository
}

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
