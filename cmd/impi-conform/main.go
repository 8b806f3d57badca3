// Command impi-conform judges what others have made. Transport plugins: it tries
// every rule of the contract on a vendor's binary and says what a site would see
// (docs/plugin-howto.md). Implementations of IMPI: it plays server, clients, hosts
// and procs against them, case by case (docs/conformance).
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/openimpi/impi/internal/cmdline"
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
	if cmdline.WantsVersion(args) {
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
	fmt.Fprintf(err, "impi-conform: unknown command %q; write transport, rules, protocol, program or help\nTry: impi-conform help\n", args[0])
	return statusUsage
}

var (
	//go:embed help/impi-conform.txt
	help string
	//go:embed help/protocol.txt
	helpProtocol string
)
