package main

const help = `impi-sim runs whole MPI jobs in one thread under one seed: server, sites, agents,
procs and links, with faults. It judges the bytes on all links, what each rank
received, and that everybody comes to an end. The same seed does the same, always.

Usage:
  impi-sim -seed N [flags]
  impi-sim -seeds A:B [flags]
  impi-sim -case FILE [flags]
  impi-sim -scale CLIENTS:PROCS [-json]

What to run:
  -seed N           the case that N decides
  -seeds A:B        those of A to B-1; without B, as many as there is time for
  -case FILE        a case in its text form, as -print and failures write it
  -scale C:P        one large job of C sites and P procs, as 32:100000: what startup,
                    barrier, bcast and allreduce cost in messages, depth and memory
  -time T           begin no more seeds after T, as 30s or 2h
  -procs P          at most P procs in a case             (default 12; with -worlds 9)
  -steps S          programs of about S steps at most     (default 120; with -worlds 16 things
                    that are begun)
  -no-faults        the same jobs and programs, but nothing goes wrong
  -worlds           seeds are of several jobs that meet: ports, connecting, spawning,
                    disconnecting, and roots that die meanwhile

How:
  -j N              so many worlds at a time              (default: one per core)
  -twice            run each case twice, and want the same (default: every 16th seed)
  -failures N       stop after N failures; 0: never       (default 1)
  -shrink=false     leave failing cases as they are, of seeds and of files
  -shrink-time T    how long to make each of them smaller (default 30s)
  -out DIR          where to write them                   (default out/sim)

What to print:
  -print            the case, without running it
  -trace N          the last N events; 0: none            (default 60, for failures)
  -coverage         what the runs have covered, per 1000 jobs
  -progress         a line now and then; on a terminal that is so anyway
  -json             a summary as JSON on standard output
  -help             this

Exit status:
  0  everything was as it must be
  1  something was not; the text says what, how to see it again, and where the
     smallest case is that still fails
  2  wrong flags or case

Examples:
  Jobs that meet:
    impi-sim -worlds -seeds 0:2000 -coverage

  Look at one seed:
    impi-sim -seed 42 -print
    impi-sim -seed 42 -trace 1000

  All night, larger jobs, on all cores:
    impi-sim -seeds 1000000: -procs 24 -steps 120 -time 8h -failures 0

  Does it still fail?
    impi-sim -case out/sim/seed-42.txt
`
