# The smallest job of two sites on one machine.
job { embedded_server {} }
program { command = ["./bin/prog"] }
site "beta"  { client = 1  host { address = "127.0.0.3"  procs = 2 } }
site "alpha" { client = 0  host { address = "127.0.0.2"  procs = 2 } }
