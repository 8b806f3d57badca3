package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/openimpi/impi/internal/abi"
	"github.com/openimpi/impi/internal/cmdline"
)

//go:embed help/abi.txt
var abiHelp string

func abiCommand() *cmdline.Command {
	c := &cmdline.Command{Name: "abi", Help: abiHelp, Flags: cmdline.NewFlags()}
	asJSON := c.Flags.Bool("json", false, "")
	c.Run = func(_ []string, out, _ io.Writer) (int, error) { return statusOK, showABI(*asJSON, out) }
	return c
}

func showABI(asJSON bool, out io.Writer) error {
	all := abi.Functions()
	if asJSON {
		return cmdline.WriteJSON(out, map[string]any{"functions": all})
	}
	done, missing := bySupport(all)
	_, err := fmt.Fprintf(out, "%d of %d functions are implemented:\n%s", done.n, len(all), done.text.String())
	if err == nil && missing.n > 0 {
		_, err = fmt.Fprintf(out, "\nmissing, %d:\n%s", missing.n, missing.text.String())
	}
	return err
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
