package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/transporttest"
)

// pluginsVerify is the command. It starts no plugin.
func pluginsVerify(o *pluginOptions, std streams) error {
	list, err := o.toVerify(std)
	if err != nil {
		return err
	}
	bad := false
	for _, p := range list {
		bad = bad || p.Error != ""
	}
	if o.json {
		err = writeJSON(std.out, map[string]any{"plugins": list})
	} else {
		for _, p := range list {
			writePin(p, std)
		}
	}
	if err == nil && bad {
		err = errBad
	}
	return err
}

func (o *pluginOptions) toVerify(std streams) (list []installed, err error) {
	switch {
	case o.file != "":
		list, err = inJob(o.file, std.err)
	case len(o.args) == 0:
		list, err = inDir(o.dir)
	}
	if err != nil {
		return nil, err
	}
	for _, arg := range o.args {
		p, err := o.find(arg)
		switch {
		case p.Builtin:
			return nil, fmt.Errorf("%s is built in: there is no file to verify", arg)
		case err != nil && p.Error == "":
			return nil, err
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, errors.New("there are no plugins; give their folder with -dir, or files")
	}
	return list, nil
}

// writePin prints a block to be copied into a job file.
func writePin(p installed, std streams) {
	switch {
	case p.Error != "":
		fmt.Fprintf(std.err, "impi-node plugins verify: %s: %s\n", p.Name, p.Error)
	case p.Trusted != "":
		fmt.Fprintf(std.out, "# %s is the file that the job file trusts.\n", p.Path)
	default:
		fmt.Fprintf(std.out, "transport %q {\n  plugin = %q\n  sha256 = %q\n}\n", p.Name, host.Prefix+p.Name, p.SHA256)
	}
}

// pluginsTry is the verb test.
func pluginsTry(o *pluginOptions, std streams) error {
	p, err := o.find(o.args[0])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s := conformance.Subject{Name: p.Name, NoMTLS: o.noMTLS}
	if !p.Builtin {
		s.Path = p.Path
	}
	table := std.out
	if o.json {
		table = std.err
	}
	opt := conformance.Options{Quick: !o.full, Progress: func(r conformance.Result, _, _ int) {
		if r.Verdict != "" {
			fmt.Fprintln(table, conformance.Line(r))
		}
	}}
	if o.plane != "" {
		opt.Planes = []transports.DataPlane{transports.DataPlane(o.plane)}
	}
	report, err := conformance.Run(ctx, s, opt)
	if err != nil {
		return err
	}
	if o.json {
		err = report.WriteJSON(std.out)
	} else {
		report.WriteSummary(table)
	}
	if err == nil && report.Verdict != transporttest.Pass {
		err = errBad
	}
	return err
}
