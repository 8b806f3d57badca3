site "alpha" {
  client = 0
  server = "127.0.0.1:${env.NO_SUCH_PORT}"
  host { address = env.HOST_ADDRESS
         procs = many }
  auth "none" {}
}
program { command = ["../bin/prog"] }
log { level = debug }
