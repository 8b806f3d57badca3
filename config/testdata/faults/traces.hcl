job { embedded_server {} }
program { command = ["../bin/prog"] }
trace { otlp = "127.0.0.1:4318" }
site "alpha" {
  client = 0
  host {
    address = "127.0.0.2"
    procs   = 1
  }
  trace { otlp = "http://me:secret@collector:4318" }
}
site "beta" {
  client = 1
  host {
    address = "127.0.0.3"
    procs   = 1
  }
  trace {
    calls = "calls.json"
    otlp  = "https://collector.example/otlp/v1/traces"
  }
}
site "gamma" {
  client = 2
  host {
    address = "127.0.0.4"
    procs   = 1
  }
  trace { otlp = "grpc://collector:4317" }
}
