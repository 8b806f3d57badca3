# The job that asks; README.md says how to start it.
job { embedded_server {} }

program { command = ["../../bin/meet"] }

names {
  server = "127.0.0.1:7900"
  scope  = "examples"
  auth "key" { file = "names.key" }
}

site "gamma" {
  client = 0
  host { address = "127.0.0.4"  procs = 2 }
}
