package main

const help = `impi-server is where the sites of one MPI job meet. Start it first. It prints the
address that the sites need, waits for all of them, passes on what they have to
tell each other, and ends when the last site has finished. The names of ports that
procs of the job publish (MPI_Publish_name) are kept here, for this job only.

With -names it keeps names for several jobs, which meet by them, and ends when it
gets SIGINT or SIGTERM. Names end with the jobs that published them.

Usage:
  impi-server -clients N [flags]
  impi-server -names [flags]

Flags:
  -clients N        number of sites ("clients") of the job, 1 to 32
  -names            keep names of ports for several jobs
  -host ADDRESS     address to listen on                 (default: all of this machine)
  -port P           TCP port to listen on                (default: any free one)
  -auth none|key    how sites prove that they belong to the job, or with -names
                    that they may read and write names; none on an address that other
                    machines can reach gets a warning
  -key-file FILE    file with the key, a decimal 64-bit integer
  -cert FILE        certificate of this server, PEM, as impi-node cert makes it: sites
                    of impi must have one of the same CA
  -key FILE         its private key, PEM
  -ca FILE          the CA that has signed the certificates of all sites, PEM
  -require-tls      take sites of impi only: those of another MPI, which speak plain
                    IMPI, are turned away
  -resume TIME      how long a site of impi may be without its connection at most, if it
                    wants that (default 5m; 0: a connection that breaks ends the job)
  -timeout TIME     how long to wait for all sites, and then for their data (default 60s)
  -log-level LEVEL  trace, debug, info, warn, error or off (default info)
  -log-json         log lines as JSON
  -version          print the version
  -help             print this

Environment, used where the flags say nothing:
  IMPI_AUTH_KEY     the key; every site must have the same
  IMPI_AUTH_NONE    set to anything: sites need no key. With IMPI_AUTH_KEY set
                    too, a site that offers its key is asked for it.

Output:
  One line on standard output, ADDRESS:PORT, as soon as sites may connect.
  Everything else goes to standard error.

Exit status:
  0  every site has finished; with -names, a signal has come
  129, 130, 143
     SIGHUP, SIGINT (Ctrl-C) or SIGTERM came before that; the sites end the job
  1  the job failed: a site did not come in time, came twice, broke the protocol,
     or died; the last line says which and why, and sites running impi heard the same
  2  wrong flags, environment or key file

Examples:
  Two sites, on a network where nobody else can connect:
    impi-server -clients 2 -auth none -port 7800

  Three sites with a key that only they know:
    (umask 077; od -An -N8 -tu8 /dev/urandom > job.key)
    impi-server -clients 3 -key-file job.key -host 192.0.2.1 -port 7800

  Names of ports for all jobs that have the key; each job file says
  names { server = "192.0.2.1:7900"  auth "key" { file = "names.key" } }:
    (umask 077; od -An -N8 -tu8 /dev/urandom > names.key)
    impi-server -names -key-file names.key -host 192.0.2.1 -port 7900

  Sites with certificates, and nobody else:
    impi-node cert init -sites server,alpha,beta
    impi-server -clients 2 -key-file job.key -port 7800 -require-tls \
        -cert certs/server.pem -key certs/server.key -ca certs/ca.pem

  In a script that starts a site of LAM/MPI once the address is known:
    export IMPI_AUTH_NONE=1
    impi-server -clients 2 > address &
    until [ -s address ]; do sleep 0.1; done
    mpirun -client 1 "$(cat address)" C ./prog
`
