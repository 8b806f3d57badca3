package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/openimpi/impi/internal/abi"
)

//go:embed help/abi.txt
var abiHelp string

// showABI runs impi-node abi.
func showABI(args []string, std streams) int {
	flags := flag.NewFlagSet("abi", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	asJSON := flags.Bool("json", false, "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		fmt.Fprint(std.err, "impi-node abi: the only flag is -json\nTry: impi-node help abi\n")
		return statusUsage
	}
	all := abi.Functions()
	if *asJSON {
		if err := writeJSON(std.out, map[string]any{"functions": all}); err != nil {
			complain(std.err, err)
			return statusBad
		}
		return statusOK
	}
	done, missing := bySupport(all)
	fmt.Fprintf(std.out, "%d of %d functions are implemented:\n%s\nnot implemented, %d:\n%s",
		done.n, len(all), done.text.String(), missing.n, missing.text.String())
	return statusOK
}

// functionList is text with as many names on each line as fit.
type functionList struct {
	n    int
	line int
	text strings.Builder
}

func (l *functionList) add(name string) {
	const width = 78
	if l.line == 0 || l.line+1+len(name) > width {
		if l.n > 0 {
			l.text.WriteByte('\n')
		}
		l.text.WriteByte(' ')
		l.line = 1
	}
	l.text.WriteString(" " + name)
	l.line += 1 + len(name)
	l.n++
}

// bySupport returns the functions that are implemented and those that are not.
func bySupport(all []abi.Support) (done, missing *functionList) {
	done, missing = &functionList{}, &functionList{}
	for _, f := range all {
		if f.Implemented {
			done.add(f.Name)
		} else {
			missing.add(f.Name)
		}
	}
	for _, l := range []*functionList{done, missing} {
		if l.n > 0 {
			l.text.WriteByte('\n')
		}
	}
	return done, missing
}
