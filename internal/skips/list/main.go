// Command list prints which tests were not run, for want of what, and what to install.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

const help = `Prints which tests were not run, for want of what, and what to install.

usage: go run ./internal/skips/list [-strict FILE] EVENTS

EVENTS is what go test -json has written. With -strict each skip is a fault that no line
of FILE allows; a line is a regular expression for package.Test, blanks, and one for the
reason.

exit status: 0; 1 if there is a fault; 2 for wrong usage
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("list", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, help) }
	strict := flags.String("strict", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		flags.Usage()
		return 2
	}
	list, err := read(flags.Arg(0), skips.Read)
	if err != nil {
		fmt.Fprintf(stderr, "list: %v\n", err)
		return 1
	}
	var faults []skips.Skip
	if *strict != "" {
		allowed, err := read(*strict, skips.ReadAllowed)
		if err != nil {
			fmt.Fprintf(stderr, "list: %v\n", err)
			return 1
		}
		faults = allowed.Faults(list, soak.Enabled())
	}
	skips.Print(stdout, list)
	if len(faults) == 0 {
		return 0
	}
	fmt.Fprintf(stdout, "FAIL: these tests should have run here. What may be skipped is in %s:\n", *strict)
	for _, s := range faults {
		fmt.Fprintf(stdout, "  %s: %s\n", s.Test, s.Reason)
	}
	return 1
}

func read[T any](name string, parse func(io.Reader) (T, error)) (v T, err error) {
	f, err := os.Open(name)
	if err != nil {
		return v, err
	}
	defer f.Close()
	if v, err = parse(f); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return v, err
}
