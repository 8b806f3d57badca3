// Command impi-conform judges what others have made. Transport plugins: it tries
// every rule of the contract on a vendor's binary and says what a site would see
// (docs/plugin-howto.md). Implementations of IMPI: it plays server, clients, hosts
// and procs against them, case by case (docs/conformance).
package main

import (
	_ "embed"
	"io"
	"os"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/interpreter"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports/tcp"
)

// Exit statuses.
const (
	statusPass  = 0
	statusFail  = 1 // a rule was violated
	statusUsage = 2 // wrong command line
	statusNone  = 3 // the plugin does not start, so nothing was checked
)

func main() {
	if sdk.IsPlugin() { // run as "impi-conform transport builtin:tcp"
		sdk.Serve(sdk.Options{Transport: tcp.New()})
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, out, err io.Writer) int {
	return newCommand().Execute(args, out, err)
}

func newCommand() *cmdline.Command {
	c := cmdline.NewProgram("impi-conform", help, "")
	c.Flags = nil
	c.Run = func(_ []string, _, errs io.Writer) (int, error) {
		_, err := io.WriteString(errs, help)
		return statusUsage, err
	}
	source := func(_ []string, out, _ io.Writer) (int, error) {
		_, err := io.WriteString(out, interpreter.C)
		return statusPass, err
	}
	c.Commands = append(c.Commands,
		transportCommand(),
		&cmdline.Command{Name: "rules", Run: func(_ []string, out, _ io.Writer) (int, error) { return rules(out), nil }},
		protocolCommand(),
		&cmdline.Command{Name: "program", Run: source},
		&cmdline.Command{Name: "interpreter", Hidden: true, Run: func([]string, io.Writer, io.Writer) (int, error) { // the same in Go, started by an impi-node
			return interpreter.Main(), nil
		}})
	c.AddHelp(nil)
	return c
}

var (
	//go:embed help/impi-conform.txt
	help string
	//go:embed help/protocol.txt
	helpProtocol string
)
