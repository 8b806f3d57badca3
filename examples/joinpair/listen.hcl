# The job that listens; README.md says how to start it.
job { embedded_server {} }

program { command = ["../../bin/joinpair", "-listen", "127.0.0.1:7950"] }

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 1 }
}
