site "alpha" {
  client = 0
  embedded_server {}
  auth "none" {}
  host {
    address = "127.0.0.2"
    procs   = 1
  }
}
program { command = ["/bin/true"] }

plugin "nothing" {}
plugin "OFI" { source = "./mirror" }
plugin "both" { source = "mirror" }
plugin "ftp" { source = "ftp://example.org/x" }
plugin "plain" { source = "http://plugins.example.org/x" }
plugin "user" { source = "https://me:secret@plugins.example.org/x" }
plugin "query" { source = "https://plugins.example.org/x?y" }
plugin "untrusted" { source = "https://plugins.example.org/x" }
plugin "layout" { source = "oci:" }
plugin "constraint" {
  source  = "./mirror"
  version = "~> one"
}
plugin "keys" {
  source = "./mirror"
  keys   = ["RWSNLRwmASfHROpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs", "RWnonsense"]
}
plugin "one-key" {
  source = "./mirror"
  keys   = "RWSNLRwmASfHROpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"
}
plugin "sum" {
  source = "./mirror"
  sha256 = "abc"
}
plugin "sums" {
  source = "./mirror"
  sha256 = { linux = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
}
plugin "short-sum" {
  source = "./mirror"
  sha256 = { linux_amd64 = "9f86" }
}
plugin "typo" {
  sorce = "./mirror"
}
plugin "typo" { source = "./mirror" }
plugin "missing" { source = "./mirror" }
plugin "tcp" { source = "./mirror" }

transport "missing" {}
transport "pinned" {
  plugin = "missing"
  sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
}
