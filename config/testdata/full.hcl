# Everything that a job file can say. This file loads as it stands; a test
# checks that no block and no attribute is missing here. A line that starts
# with #: is an alternative to what stands before it.
#
# One file can describe all sites of a job, as this one does: then each machine
# gets the same file, and impi-node runs the sites whose addresses are its own.
# Or each site has a file of its own with one site block, and the blocks that
# belong to the site may stand at the top of the file beside it.
#
# Relative paths start from the folder of this file. ${env.NAME} is the
# environment variable NAME, which must be set. It gives numbers, true, false and
# labels too: client = env.RANK, site "${env.SITE}".

# The job: where its server is, and who may join. ------------------------------
job {
  # The server runs in the node of the lowest client that is ours. All other
  # sites dial it; port 0 (the default) is for jobs on one machine only.
  embedded_server {
    listen  = "127.0.0.1:7800" # an address that the sites reach, or a name: "head.example:7800"
    clients = 4                # default: the number of sites in this file

    # true: no site comes without TLS. false: sites with certificates (quic, or tcp with
    # tls) do without what others of them lack, with a warning. Unsaid: such sites need them.
    require_tls = false
  }
  #: server = "192.0.2.7:7800" # or: an impi-server, or a site elsewhere
  #: servers = ["192.0.2.7:7800", "192.0.2.8:7800"] # or: several of which one may be down at the start
  #: require_tls = true        # the same, for that server
  #: server_foreign = true     # it is another MPI's, and speaks plain IMPI only

  survive = false # true: procs and sites that are lost do not end the job

  timeout = "45s" # how long an embedded server waits; default: limits.start

  # The job's secret: a number of at most 64 bits, decimal or 0x and hex digits.
  # A LAM peer reads decimal only. Make one with:
  #   (umask 077; od -An -N8 -tu8 /dev/urandom > job.key)
  # A job whose sites are all in one file and on the loopback network needs no
  # auth block: its launcher draws a key.
  auth "key" { file = "job.key" } # only its owner should be able to read it
  #: auth "key" { env = "IMPI_AUTH_KEY" }
  #: auth "none" {}             # anybody who reaches the server can join
}

# How long the steps of a job may take. ----------------------------------------
limits {
  start = "60s" # from the start of a node until all sites are connected
  stop  = "10s" # from the first order to end until procs are killed

  resume = "30s" # how long a link that broke is dialled again
  # after which a machine of which nothing is heard is lost
  silence = "10s"
}

# What holds for all sites. A site block can have the same blocks. Of program, protocol,
# wait, log, metrics, ui, trace and spawn, the site's attributes win one by one; a names,
# transport or route in the site stands for the whole of the one here with the same label.
program {
  command = ["./bin/prog", "--rounds", "1000"] # without a slash: looked up in PATH
  dir     = "."
  env     = { OMP_NUM_THREADS = 1, DATA = "${env.HOME}/data" } # added to the node's

  prefix_output = true # "[rank] " before each line of output
  stdin         = 0    # the world rank that reads impi-node's stdin; -1: none
  bind          = "core" # each proc has a core of its own; "none" (the default): any that is free
}

# The built-in transports shm, unix and tcp need no block; quic has settings that
# must be given, and is there when it has one. What stands in config, the transport
# itself decides: docs/transports.md has the settings.
transport "tcp" {
  config {
    nodelay    = true
    port_range = "7900-7999"
    #: tls = true # with cert, key and ca as below: links are encrypted
  }
}
transport "quic" {
  config {
    cert  = "certs/alpha.pem" # of the site; impi-node cert init makes the files
    key   = "certs/alpha.key" # paths start from the folder of this file
    ca    = "certs/ca.pem"
    peers = ["alpha", "beta", "gamma"] # whose certificates are accepted; default: the CA's
    lanes = 2 # connections to one peer
  }
}

#: hosts = "127.0.0.[2-5]" # in a file of one site; so may all that belongs to a site, as program
#: procs = 2              # "auto": as many as a scheduler has given each host for, or its cores
plugin_dir = "bin" # where plugins are; default: the folder of this file, for installed ones plugins in it

transport "x" {
  plugin = "impi-transport-x" # a name in plugin_dir, or a path
  sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  auto_mtls = true # false: a plugin in another language that cannot protect its control connection
  confine = true # false: the plugin has all rights of its node: docs/security.md
  user_namespace = false # true: the plugin has one of its own
  env = { FI_PROVIDER = "tcp" } # added to the plugin's environment
  config {
    servers = ["192.0.2.1", "192.0.2.2"]
    retries = 3
  }
}

# Where a plugin comes from. impi-node plugins install gets it, and writes the version that it
# has chosen to impi.lock.hcl; transport "ofi" {}, or plugin = "ofi" in a transport, uses it.
plugin "ofi" {
  source  = "https://plugins.example.org/impi" # or a folder, "./mirror", or "oci:./layout"
  version = "~> 1.2"                           # default: any release
  keys    = ["RWSNLRwmASfHROpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"] # minisign keys of its maker
  # which files are trusted; default: those of the lock file. One checksum is for all platforms.
  sha256 = { linux_amd64 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
}

# How a site reaches another one: the route with its name, or else route "*".
# Without any, the transports are tried in this order: shm, unix, tcp, quic, plugins.
route "*" {
  prefer      = ["unix", "x", "tcp"] # best first; default: all; in route "gamma" of gamma "native", too
  direct      = true                 # procs may open links of their own; else through the agents
  data_plane  = ["fd"]               # a link without one of these fails; default: any
  require_tls = false                # true: only transports that encrypt; default: certificates close the route
  resume      = false                # true: links that break are made again and lose nothing

  # What leaves by these links is compressed where that makes it less, if the other site's route to
  # this one has such a block, too. Without the block it is not. Never to other MPIs.
  compress {
    algorithm = "zstd" # the only one
    level     = 3      # 1 (the default), the fastest, to 19
    min       = 8192   # bytes that leave together from which they are compressed; default: 4096
  }

  # Doubles in messages travel as floats, rounded, if the other site's route to this one has such a
  # block, too. Without the block all numbers travel as they are.
  precision { double = "float" }
}

route "lam" {
  # Of user data: external32 as the standard wants it, or what a peer is known
  # to have in memory: native-le, native-be, or native-x86, which is native-le but
  # for long doubles. Default: native between sites of ours with one byte order,
  # what the site block of a foreign one says, external32 otherwise.
  representation = "external32"
}

# Where everything that listens has its port, unless the file names one, for firewalls: TCP, and UDP
# for quic. impi-node ports prints the rules. Default: the ports named here, and any.
ports = "7820-7899"

# What each site announces at startup; the job runs with the smallest datalen,
# ackmark, hiwater and tag_ub of all, and xsize and maxlinear must be equal.
protocol {
  datalen   = 262144     # most bytes of user data in a packet, from 1
  ackmark   = 32         # packets per acknowledgement, not above hiwater
  hiwater   = 128        # packets under way per pair of procs
  tag_ub    = 2147483647 # highest tag, from 32767
  xsize     = -1         # bytes from which collectives use their long form; -1: 1024
  maxlinear = -1         # most clients for linear collectives; -1: 4

  # How sites of ours exchange messages in collective operations: all at once ("direct"), up and down a
  # tree ("tree"), or by the round trips in the file, which impi-node links -measure -keep writes.
  collectives = "auto"
  measured    = "measured.json"

  # Bytes of messages that nobody has asked for yet, for each proc: once there are so many, other
  # procs of ours send it messages whose data wait until they are received. From 65536.
  unexpected = 67108864

  # For peers that know another IMPI than ours. All sites have one dialect;
  # draft-1999 is the text of March 1999.
  dialect  = "published"
  ipv4     = "compatible"        # how IPv4 addresses are sent: compatible ::192.0.2.1, mapped ::ffff:192.0.2.1
  versions = ["0.0", "0.65537"]  # listed at startup; without 0.65537 others do not see that a site is ours
}

# How procs wait: "auto" spins as long as it was seen to pay, "20us" spins that
# long and then sleeps, "0" sleeps at once. And how often procs look after their messages while the
# program computes: "0" in calls of MPI alone, or a time from "50us" to "1s".
wait {
  spin     = "auto"
  progress = "1ms"
}

# What may be started while the job runs, by MPI_Comm_spawn. Without the block, and
# without allow, procs of the site itself spawn what they like and others nothing.
spawn {
  slots = 256                   # most spawned procs that live at a time; 0: none
  allow = ["./bin/*", "/opt/x"] # patterns of file names of programs, for all who spawn here
}

# Who keeps the names of ports that the procs publish (MPI_Publish_name): a server that
# several jobs share, started with impi-server -names. Without the block the job's own
# server does, and only this job sees them.
names {
  server = "127.0.0.1:7900"
  scope  = "chem"                    # names of other scopes are not seen; default: none
  auth "key" { file = "job.key" }    # the server's key, or: auth "none" {}
}

# Where each node serves figures for Prometheus, with no password, as http://127.0.0.1:9464/metrics.
# 0: at any port, which it logs. Without the block nowhere.
# calls: the procs measure their time in calls of MPI, and for what they wait there.
metrics {
  listen = "127.0.0.1:0"
  calls  = false
}

# What is left of the job at its end, as one HTML file by the head of each site.
# %j: the job's name, %s: the site's, %p: the process ID of the node.
report { path = "job-%j-%s.html" }

# Where the head of each site serves the page of impi-node ui, which needs a token. 0: any port.
# Without the block that command serves it.
ui { listen = "127.0.0.1:0" }

trace {
  calls = "calls-%r.json" # the calls of MPI of each proc as a timeline for Perfetto or Chrome; %r is the world rank; default: none
  short = "merge" # "merge" or "each": short calls that follow each other closely are one entry, or each is one; default: "merge"
  otlp  = "http://127.0.0.1:4318" # an OpenTelemetry collector, to which each node sends the job's steps and faults; default: none
}

log {
  level  = "info" # trace, debug, info, warn, error
  format = "text" # text, json
  trace  = "packets-%r.txt" # prints each packet; %r is the world rank; default: none
}

# The sites. -------------------------------------------------------------------
site "alpha" {
  client = 0 # its rank in the job: 0, 1, ... fix the order of MPI_COMM_WORLD
  network = "127.0.0.0/8"  # or an interface's name: which address of a machine its links use; default: the host's
  ports  = "7820-7899"      # of this site, instead of those at the top
  head   = "127.0.0.2:7802" # where the first host takes connections of hosts on other machines; default: port 7802 of its address

  host {
    address = "127.0.0.2" # or a name, which is looked up; advertised to peers and dialled from
    procs   = 2
    port    = 7801        # of the channels from other hosts; 0 (the default): any
    board   = true        # the default: its procs share memory for collective operations
  }
  host { address = "127.0.0.3"  procs = 1 }

  # How the node of the first host starts those of all others: "ssh", "slurm" inside of an
  # allocation, "pbs" inside of a job, "exec" by any command. Without the block somebody else does.
  # With "slurm" and "pbs" the hosts may be left out: they are those that the job has got.
  launch "ssh" {
    program = "/usr/local/bin/impi-node" # there; default: where it is here
    options = ["-p", "2222"]             # for ssh, or srun of "slurm"
    fanout  = 32                         # "ssh", "pbs": how many hosts each host starts
    #: mpi = "none"                      # "slurm": srun's --mpi, where the network wants a plugin's credentials
    #: command = ["kubectl", "exec", "-i", "{host}", "--"] # "exec": {host} as in the file, {name} up to its first dot
  }
}

site "beta" {
  client = 1
  host { address = "127.0.0.4"  procs = 2 }

  program { env = { OMP_NUM_THREADS = 4 } }
  transport "x" { plugin = "./bin/impi-transport-x" }
  route "alpha" { prefer = ["tcp"]  direct = false }
  protocol {
    datalen = 1024
    omit    = ["C_TAGUB"] # optional labels of startup that the site does not send; default: none
  }
  wait { spin = "20us" }
  log { level = "debug" }
  spawn { slots = 8 }
  names {
    server = "127.0.0.1:7901"
    #: auth "key" { env = "IMPI_AUTH_KEY" }
    auth "none" {}
  }
}

site "gamma" {
  client = 2
  #: spare = true # instead of client: no procs but those that are spawned there: docs/survival.md

  # Hosts that are alike, in one string as Slurm writes it: "127.0.0.[5-8,10],127.0.1.[1-2]".
  # It is short for as many host blocks, which come before those that are written. Names
  # stand for addresses here, too: "node[001-064]".
  hosts = "127.0.0.[5-6]"
  procs = 1 # of each of them

  # A site can say by itself where the server is and how it joins.
  server = "127.0.0.1:7800"
  #: servers = ["127.0.0.1:7800"]
  #: server_foreign = true
  #: require_tls = false
  #: embedded_server { listen = "127.0.0.5:7800"  clients = 4 }
  auth "key" { file = "job.key" }

  # The site's procs use the MPI of its machines among each other, such as Open MPI or MPICH, and
  # that one's launcher starts them: docs/native.md.
  #: native {
  #:   mpicc  = "mpicc"  # of that MPI; default: the first in PATH
  #:   launch = ["mpirun", "-n", "{procs}", "--hostfile", "{hostfile}"] # before the program; or {machinefile}
  #:   shim   = "shim.so" # what impi-node native build has made; default: it is made at the start
  #: }
}

# A site that somebody else runs, like LAM/MPI: its name and rank, so that a route
# can name it, and what is known of it.
site "lam" {
  client  = 3
  foreign = true

  # Its MPI, if that has habits of its own: lam-7.1 sends what it has in memory,
  # native-x86 unless representation says otherwise, and puts MPI_Reduce into the
  # point-to-point context. Default: it keeps to the standard.
  implementation = "lam-7.1"
  representation = "native-x86"

  # Addresses and networks that its hosts connect from besides the addresses that they
  # give at startup, as hosts with several addresses do. Default: none.
  channels_from = ["198.51.100.7", "2001:db8::/64"]
}
