job {
  embedded_server {}
  auth "none" {}
}
program { command = ["../bin/prog"] }
site "${env.BAD_NAME}" {
  client = env.FOUR
  hosts  = "127.0.0.[2-3]"
  procs  = "${env.FOUR}"
}
site "b-${env.NOT_SET}" {
  client = 1
  host {
    address = "-${env.FOUR}"
    procs   = "${env.BIG}0"
    board   = env.FOUR
  }
}
site "c${nothing}" {
  client = "1"
  host {
    address = "127.0.0.4"
    procs   = 1
  }
}
