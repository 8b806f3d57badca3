package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

type request struct {
	subject conformance.Subject
	options conformance.Options
	badge   string
	shown
}

// builtin before the name of a transport stands for one that is built in here.
const builtin = "builtin:"

func transportCommand() *cmdline.Command {
	r := &request{}
	c := &cmdline.Command{Name: "transport", Args: cmdline.File, Flags: cmdline.NewFlags(), Run: r.judge}
	f := c.Flags
	f.BoolVar(&r.options.Quick, "quick", false, "")
	r.flags(f)
	f.BoolVar(&r.subject.NoMTLS, "no-mtls", false, "")
	f.BoolVar(&r.subject.Unconfined, "unconfined", false, "")
	f.StringVar(&r.subject.Host, "host", "", "")
	f.StringVar(&r.badge, "badge", "", cmdline.File)
	f.Func("env", "", func(s string) error {
		r.subject.Env = append(r.subject.Env, s)
		return nil
	})
	f.Func("set", "", r.set)
	f.Func("plane", "", func(s string) error {
		r.options.Planes = append(r.options.Planes, transports.DataPlane(s))
		return nil
	})
	c.Check = func(paths []string) (err error) {
		if err := cmdline.ExactArgs(1, "the path of one plugin")(paths); err != nil {
			return err
		}
		if name, ok := strings.CutPrefix(paths[0], builtin); ok {
			r.subject.Name = name
		} else {
			r.subject.Path = paths[0]
		}
		if r.badge != "" && r.pattern != "" {
			return errors.New("-badge: a badge is of all rules; leave out -run")
		}
		r.options.Run, err = r.cases()
		return err
	}
	return c
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

func (r *request) judge(_ []string, out, errOut io.Writer) (int, error) {
	ctx, stop := cmdline.Interruptible()
	defer stop()
	table := r.table(out, errOut)
	if !r.quiet {
		r.options.Progress = progress(table, conformance.Line, func(r conformance.Result) (string, bool) { return r.ID + " " + r.Name, r.Verdict == "" })
	}
	report, err := conformance.Run(ctx, r.subject, r.options)
	if err != nil {
		return statusNone, err
	}
	if err := errors.Join(toFile(r.badge, report.WriteBadge), r.write(report, out, table)); err != nil {
		return statusUsage, err
	}
	if report.Verdict != transporttest.Pass {
		return statusFail, nil
	}
	return statusPass, nil
}

func rules(out io.Writer) int {
	for _, c := range conformance.Cases() {
		fmt.Fprintf(out, "%-11s %-22s %-8s %s\n", c.ID, c.Name, c.Kind, c.Rule)
	}
	for _, c := range transporttest.Cases() {
		fmt.Fprintf(out, "%-11s %-22s %-8s %s\n", c.ID, c.Name, conformance.KindOf(c.ID), c.Rule)
	}
	return statusPass
}
