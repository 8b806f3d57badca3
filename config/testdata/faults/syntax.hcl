site "alpha" {
  client = 0
  host { address = "127.0.0.1, procs = 2 }
}
