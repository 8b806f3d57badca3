// Command impi-node runs a site's share of an MPI job that may span several
// sites: it starts the programs, connects them with those of the other sites,
// and ends them together. See docs/impi-node.md.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/openimpi/impi/plugins/sdk"
)

// Exit statuses of impi-node itself. Others are in package node, or are those of the procs.
const (
	statusOK    = 0
	statusUsage = 2
)

func main() {
	if sdk.IsPlugin() {
		serveBuiltin(sdk.Builtin())
	}
	collectLater()
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// collectLater delays the first garbage collection until the heap has 16 MiB instead of 4, so that
// a small job starts without any. After that the collector works as usual.
func collectLater() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	usual := debug.SetGCPercent(400)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}

type streams struct {
	in       *os.File
	out, err *os.File
}

func run(args []string, std streams) int {
	return tree(std).Execute(args, std.out, std.err)
}

func complain(w io.Writer, what any) { fmt.Fprintf(w, "impi-node: %v\n", what) }
