# The job that dials; README.md says how to start it.
job { embedded_server {} }

program { command = ["../../bin/joinpair", "-dial", "127.0.0.1:7950"] }

site "beta" {
  client = 0
  host { address = "127.0.0.3"  procs = 1 }
}
