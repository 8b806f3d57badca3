// Command impi-conform judges what others have made. Transport plugins: it tries
// every rule of the contract on a vendor's binary and says what a site would see
// (docs/plugin-howto.md). Implementations of IMPI: it plays server, clients, hosts
// and procs against them, case by case (docs/conformance).
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/openimpi/impi/internal/asked"
	"github.com/openimpi/impi/internal/interpreter"
	"github.com/openimpi/impi/internal/version"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports/tcp"
)

// Exit statuses.
const (
	statusPass  = 0
	statusFail  = 1 // a rule was violated
	statusUsage = 2 // wrong command line
	statusNone  = 3 // the plugin does not start, there is nothing to judge
)

func main() {
	if sdk.IsPlugin() { // judged as "impi-conform transport builtin:tcp"
		sdk.Serve(sdk.Options{Transport: tcp.New()})
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main for given arguments. It returns the exit status.
func run(args []string, out, err io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(err, help)
		return statusUsage
	}
	if asked.Version(args) {
		fmt.Fprintln(out, "impi-conform", version.String())
		return statusPass
	}
	switch args[0] {
	case "transport":
		return transport(args[1:], out, err)
	case "rules":
		return rules(out)
	case "protocol":
		return tryProtocol(args[1:], out, err)
	case "program":
		fmt.Fprint(out, interpreter.C)
		return statusPass
	case "interpreter": // the same in Go, started by an impi-node
		return interpreter.Main()
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && args[1] == "protocol" {
			fmt.Fprint(out, helpProtocol)
		} else {
			fmt.Fprint(out, help)
		}
		return statusPass
	}
	fmt.Fprintf(err, "impi-conform: there is no %q; it can be transport, rules, protocol, program or help\nTry: impi-conform help\n", args[0])
	return statusUsage
}

const help = `impi-conform judges a transport plugin, or an implementation of IMPI.

Usage:
  impi-conform transport [flags] ./impi-transport-NAME
  impi-conform rules
  impi-conform protocol [flags] [PATTERN]        (impi-conform help protocol)
  impi-conform program > interpreter.c
  impi-conform help [protocol]

Examples of transports:
  The whole contract, some minutes; a table on the terminal:
      impi-conform transport ./impi-transport-mine

  In less than a minute, while you write it:
      impi-conform transport -quick ./impi-transport-mine

  One rule again, and those about closing on one data plane:
      impi-conform transport -run T-SIZE-01 ./impi-transport-mine
      impi-conform transport -run ring:T-CLOSE ./impi-transport-mine

  For CI: a file for it, and an object for your own programs:
      impi-conform transport -junit report.xml -json ./impi-transport-mine > report.json

Flags of transport:
  -run REGEXP        the cases whose number or name it matches; before it there
                     may be a data plane and a colon
  -plane NAME        this data plane only; may be given several times
  -quick             leave out what takes long; smaller transfers, fewer links
  -json              the report as one JSON object on the standard output
  -junit FILE        the report as JUnit's XML too
  -set NAME=VALUE    a setting of its config block; may be given several times
  -env NAME=VALUE    a variable of its environment; may be given several times
  -no-mtls           it comes without AutoMTLS, as those in other languages do
  -host ADDRESS      where it listens, 127.0.0.1 unless told
  -q                 no progress

A case is one rule of the contract. Its number begins with P- if it is about the
plugin's process and with T- if it is about its links; these are tried on each
data plane that the plugin offers. "impi-conform rules" lists them all.

Exit status: 0 if no rule was violated, 1 if one was, 2 for a wrong command line,
3 if the plugin does not start.
`
