package main

const helpProtocol = `impi-conform protocol judges an implementation of IMPI 0.0 over real sockets: it plays
the server, the other clients, their hosts and their procs, case by case.

Usage:
  impi-conform protocol -iut impi|lam [flags] [PATTERN]
  impi-conform protocol -client COMMAND -program FILE [-server COMMAND] [flags] [PATTERN]
  impi-conform protocol -list [PATTERN]

Examples:
  Which cases are there, and what does each expect?
      impi-conform protocol -list
      impi-conform protocol -list 'flow control'

  Ours, all of it; then one case again with its packets:
      impi-conform protocol -iut impi
      impi-conform protocol -iut impi -trace -json IMPI-2-AUTH-01

  LAM/MPI, as make peers has built it, or another one that was built with --with-impi.
  It runs as the user nobody if you are root, which it refuses:
      impi-conform protocol -iut lam -data native-le
      impi-conform protocol -iut lam -data native-le -prefix /opt/lam

  Any other. Its procs must run our interpreter, which is one file of C:
      impi-conform program > interpreter.c && theirmpicc -o interpreter interpreter.c
      impi-conform protocol -name theirs -release 1.2 -program ./interpreter \
          -client 'theirmpirun -client {rank} {server} -np {procs} {program}' \
          -server 'their-server -server {clients}'

  For CI:
      impi-conform protocol -iut impi -junit report.xml -json > report.json

Flags:
  -iut NAME          impi or lam: how to start it is known
  -prefix DIR        impi: folder of its binaries (default: that of this program, PATH);
                     lam: where it is installed (default: what make peers has built)
  -client COMMAND    starts a client of the job; -server COMMAND a server. The shell
                     runs them, with IMPI_AUTH_NONE and IMPI_AUTH_KEY set as the case
                     wants. Filled in: {server} address:port, {rank} of the client,
                     {clients} of the job, {procs} of this client, {address} that it
                     should advertise and, for a server, listen at, {key}, {program},
                     {dir} for files. A server prints address:port as its first line
  -program FILE      the interpreter, compiled; what procs of the client run
  -many-hosts        its clients can have several hosts: {procs} and {address} are then
                     lists with commas
  -name, -release    what the report calls it
  -run REGEXP        the same as PATTERN: the cases whose number or chapter it matches
  -level MUST        only these; or SHOULD, what the text leaves open
  -strict            a violated SHOULD is a failure, too
  -quick             leave out what takes long
  -patience TIME     how long the implementation may take for any step (default 10s)
  -data FORM         how elements of collective operations travel: external32 (default), or
                     native-le, which LAM/MPI does against the standard and which would
                     hide everything else; the chapter about data wants external32 anyway
  -parallel N        so many cases at a time (default 1)
  -list              list the cases and what each expects
  -trace             keep the packets of cases that pass, too (in -json and -junit)
  -json              the report as one JSON object on the standard output
  -junit FILE        the report as JUnit's XML too
  -markdown FILE     the report as a page to publish, too
  -q                 no progress

Everything happens on the loopback network: the server at 127.0.0.1, each host at an
address of its own from 127.0.0.2 on.

Exit status: 0 if no MUST was violated (with -strict: nothing), 1 if one was, 2 for a wrong command line, 3 if
there is nothing to judge.
`
