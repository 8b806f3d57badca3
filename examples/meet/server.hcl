# The job that counts; README.md says how to start it.
job { embedded_server {} }

program { command = ["../../bin/meet", "-serve", "1"] }

names {
  server = "127.0.0.1:7900"
  scope  = "examples"
  auth "key" { file = "names.key" }
}

site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}

site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 1 }
}
