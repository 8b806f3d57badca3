package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/cmdline"
)

// shown has the flags that both testers share: which cases to try, and how to show the results.
type shown struct {
	pattern string
	asJSON  bool
	quiet   bool
	junit   string
}

func (s *shown) flags(f *flag.FlagSet) {
	f.StringVar(&s.pattern, "run", "", "")
	f.BoolVar(&s.asJSON, "json", false, "")
	f.BoolVar(&s.quiet, "q", false, "")
	f.StringVar(&s.junit, "junit", "", cmdline.File)
}

// cases returns the pattern of the cases to run, or nil.
func (s *shown) cases() (*regexp.Regexp, error) {
	if s.pattern == "" {
		return nil, nil
	}
	r, err := regexp.Compile(s.pattern)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	return r, nil
}

// table returns where lines for people go.
func (s *shown) table(out, errOut io.Writer) io.Writer {
	if s.asJSON {
		return errOut
	}
	return out
}

// progress prints a line for each case that has ended and, on a terminal, the name of the case
// that runs.
func progress[R any](w io.Writer, line func(R) string, running func(R) (string, bool)) func(R, int, int) {
	f, isFile := w.(*os.File)
	terminal := isFile && isTerminal(f)
	return func(r R, done, all int) {
		switch name, runs := running(r); {
		case !runs:
			fmt.Fprintln(w, line(r))
		case terminal:
			fmt.Fprintf(w, "%d/%d  %s\r", done+1, all, name)
		}
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// write writes a report: for CI into a file, as JSON to out, or for people to table.
func (s *shown) write(report interface {
	WriteJUnit(w io.Writer) error
	WriteJSON(w io.Writer) error
	WriteSummary(w io.Writer)
}, out, table io.Writer) error {
	if err := toFile(s.junit, report.WriteJUnit); err != nil {
		return err
	}
	if s.asJSON {
		return report.WriteJSON(out)
	}
	report.WriteSummary(table)
	return nil
}

// toFile writes a file, if it has a name.
func toFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
