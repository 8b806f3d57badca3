package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/transporttest"
)

// request is a command line.
type request struct {
	subject conformance.Subject
	options conformance.Options
	asJSON  bool
	quiet   bool
	junit   string
}

// builtin before the name of a transport stands for one that is built in here.
const builtin = "builtin:"

func parse(args []string) (*request, error) {
	r := &request{}
	f := flag.NewFlagSet("transport", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	pattern := f.String("run", "", "")
	f.BoolVar(&r.options.Quick, "quick", false, "")
	f.BoolVar(&r.asJSON, "json", false, "")
	f.BoolVar(&r.quiet, "q", false, "")
	f.StringVar(&r.junit, "junit", "", "")
	f.BoolVar(&r.subject.NoMTLS, "no-mtls", false, "")
	f.StringVar(&r.subject.Host, "host", "", "")
	f.Func("env", "", func(s string) error {
		r.subject.Env = append(r.subject.Env, s)
		return nil
	})
	f.Func("set", "", r.set)
	f.Func("plane", "", func(s string) error {
		r.options.Planes = append(r.options.Planes, transports.DataPlane(s))
		return nil
	})
	paths, err := parseMixed(f, args)
	switch {
	case err != nil:
		return nil, err
	case len(paths) != 1:
		return nil, fmt.Errorf("give the path of one plugin, not %d", len(paths))
	}
	if name, ok := strings.CutPrefix(paths[0], builtin); ok {
		r.subject.Name = name
	} else {
		r.subject.Path = paths[0]
	}
	if *pattern != "" {
		if r.options.Run, err = regexp.Compile(*pattern); err != nil {
			return nil, fmt.Errorf("-run: %w", err)
		}
	}
	return r, nil
}

// parseMixed reads flags before and behind other arguments.
func parseMixed(f *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
}

// set reads a setting. What looks like a number or a truth value is one; commas make
// a list of what is in brackets.
func (r *request) set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("write NAME=VALUE")
	}
	if r.subject.Settings == nil {
		r.subject.Settings = map[string]any{}
	}
	r.subject.Settings[name] = valueOf(value)
	return nil
}

func valueOf(s string) any {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n
	}
	if b, err := strconv.ParseBool(s); err == nil {
		return b
	}
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
		return strings.Split(strings.TrimSuffix(inner, "]"), ",")
	}
	return s
}

// transport is the subcommand.
func transport(args []string, out, errOut io.Writer) int {
	r, err := parse(args)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, help)
			return statusPass
		}
		fmt.Fprintf(errOut, "impi-conform transport: %v\nTry: impi-conform help\n", err)
		return statusUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	table := out
	if r.asJSON {
		table = errOut
	}
	if !r.quiet {
		r.options.Progress = progress(table)
	}
	report, err := conformance.Run(ctx, r.subject, r.options)
	if err != nil {
		fmt.Fprintf(errOut, "impi-conform: %v\n", err)
		return statusNone
	}
	if err := r.write(report, table, out); err != nil {
		fmt.Fprintf(errOut, "impi-conform: %v\n", err)
		return statusUsage
	}
	if report.Verdict != transporttest.Pass {
		return statusFail
	}
	return statusPass
}

func (r *request) write(report *conformance.Report, table, out io.Writer) error {
	if r.junit != "" {
		f, err := os.Create(r.junit)
		if err != nil {
			return err
		}
		if err := errors.Join(report.WriteJUnit(f), f.Close()); err != nil {
			return err
		}
	}
	if r.asJSON {
		return report.WriteJSON(out)
	}
	report.WriteSummary(table)
	return nil
}

// progress prints a line for each case that has ended and, on a terminal, one for
// the case that runs.
func progress(w io.Writer) func(conformance.Result, int, int) {
	f, isFile := w.(*os.File)
	terminal := isFile && isTerminal(f)
	return func(r conformance.Result, done, all int) {
		switch {
		case r.Verdict != "":
			fmt.Fprintf(w, "%s\n", conformance.Line(r))
		case terminal:
			fmt.Fprintf(w, "%d/%d  %s %s\r", done+1, all, r.ID, r.Name)
		}
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// rules lists all cases.
func rules(out io.Writer) int {
	for _, c := range conformance.Cases() {
		fmt.Fprintf(out, "%-11s %-22s %-8s %s\n", c.ID, c.Name, c.Kind, c.Rule)
	}
	for _, c := range transporttest.Cases() {
		fmt.Fprintf(out, "%-11s %-22s %-8s %s\n", c.ID, c.Name, conformance.KindOf(c.ID), c.Rule)
	}
	return statusPass
}
