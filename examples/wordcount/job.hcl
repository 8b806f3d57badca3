# Two sites of this machine count the words of two books.
#
#   make build && bin/impi-node -config examples/wordcount/job.hcl
job { embedded_server {} }

program { command = ["../../bin/wordcount", "-top", "10"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
