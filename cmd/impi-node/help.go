package main

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/version"
	"github.com/openimpi/impi/internal/wireup"
)

const help = `impi-node runs MPI programs, on one site or as one job across several.

Usage:
  impi-node -n PROCS [flags] [--] PROGRAM [ARGS...]
  impi-node -config JOB.HCL [-site NAME [-host ADDRESS]] [flags]
  impi-node links [-explain] [-measure] [-json]
  impi-node validate JOB.HCL [-json]
  impi-node cert init|issue|show ...
  impi-node plugins list|info|verify|test|reload|new ...
  impi-node abi [-json]
  impi-node version
  impi-node help [abi|cert|exit|files|links|plugins|site]

Examples:
  Four procs on this machine; no file is needed:
      impi-node -n 4 ./ring --rounds 1000

  All sites of a job file whose addresses are on this machine, one node each:
      impi-node -config job.hcl

  One site of a job, on its own machine; the others run the same with theirs:
      impi-node -config job.hcl -site beta

  Is the file right? Every fault is shown with its line and what to write:
      impi-node validate job.hcl

  Which transport am I on, and why? Of jobs that run, from another terminal:
      impi-node links -explain

  Certificates, so that what leaves this machine is encrypted:
      impi-node cert init -config job.hcl

  Transports of others: which are there, and can they be trusted?
      impi-node plugins list -dir plugins

  Output as the program wrote it, to be read by another program:
      impi-node -no-prefix -n 1 ./prog > result.txt

  Why does nothing happen? See each step:
      impi-node -log-level debug -config job.hcl

Flags:
  -config FILE       the job file
  -site NAME         run this site of it only
  -host ADDRESS      with -site: run this host of it only, by address or name
  -n PROCS           how many procs, if there is no job file
  -programs JSON     several programs, each with its procs; impiexec writes it
  -on JSON           machines with procs, and how to start there; impiexec writes it
  -log-level LEVEL   trace, debug, info, warn or error (job file: log block)
  -log-json          log as JSON, one object per line
  -no-prefix         lines of output do not begin with [rank]
  -bind core         each proc has a core of its own; none: any (job file: program)

Output of all procs comes out by whole lines, each behind its rank: "[2] text";
before MPI Init, when nobody has a rank, behind site and number: "[beta.0] text".
Standard input goes to rank 0. Ctrl-C ends the job on all sites in order; a
second one ends it at once.

The exit status is that of the first proc that failed; see: impi-node help exit
`

var topics = map[string]string{
	"abi":     abiHelp,
	"cert":    certHelp,
	"links":   linksHelp,
	"plugins": pluginsHelp,
	"exit": `Exit statuses of impi-node:

  0        every proc of the site ended with status 0, after MPI Finalize
  1 to 255 the status of the first proc that failed, 128 + N if signal N killed
           it (139: SIGSEGV, 134: SIGABRT), or the code of MPI Abort
  2        wrong command line or job file; nothing was started
  123      another site failed; the message says which rank there, and how
  124      a time limit passed (job file: limits block)
  125      impi-node could not do its work; the message says why
  129, 130, 131, 143
           the operator ended the job with SIGHUP, SIGINT, SIGQUIT or SIGTERM
  141      nobody reads the node's output any more, as with impi-node ... | head

Procs that were spawned while the job ran count as its own as long as the proc
that spawned them has a communicator with them; docs/dynamic.md tells more.
`,
	"files": `A job file for two sites on two loopback addresses:

  job {
    embedded_server {}
  }
  site "alpha" {
    client = 0
    host { address = "127.0.0.2"  procs = 2 }
  }
  site "beta" {
    client = 1
    host { address = "127.0.0.3"  procs = 2 }
  }
  program { command = ["./ring"] }

Check yours with: impi-node validate FILE
docs/config.md has everything that can be written there.
`,
	"site": `One site per machine: the job file is the same everywhere, or each has its
own with the same server address. On the first machine:

  impi-node -config job.hcl -site alpha

and on the second:

  impi-node -config job.hcl -site beta

Whoever comes first waits for the others and says whom it waits for. All sites
need the same key: auth "key" { file = "job.key" }.
`,
}

func printHelp(args []string, out, err io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(out, help)
		return statusOK
	}
	text, ok := topics[args[0]]
	if !ok {
		fmt.Fprintf(err, "impi-node: there is no help on %q; there is on %s\n", args[0], strings.Join(slices.Sorted(maps.Keys(topics)), ", "))
		return statusUsage
	}
	fmt.Fprint(out, text)
	return statusOK
}

func showVersion(w io.Writer) int {
	fmt.Fprintf(w, "impi-node %s\n", version.String())
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.Name
	}
	fmt.Fprintf(w, "IMPI 0.0, control protocol %d, transports %s\n", wireup.Version, strings.Join(names, " "))
	fmt.Fprintf(w, "%s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return statusOK
}
