site {
  client = 0
}
site "beta" "gamma" {
  client = 1
}
host "one" {
  address = "127.0.0.1"
  procs   = 1
}
route "a b" {}
