package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// pluginsVerify runs impi-node plugins verify. It starts no plugin.
func pluginsVerify(o *pluginOptions, std streams) error {
	if o.ofJobs() {
		return verifyJobs(o, std)
	}
	list, err := o.toVerify(std)
	if err != nil {
		return err
	}
	bad := false
	for _, p := range list {
		bad = bad || p.Error != ""
	}
	if o.json {
		err = cmdline.WriteJSON(std.out, map[string]any{"plugins": list})
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
		return nil, errors.New("no plugins found; name their folder with -dir, or name files")
	}
	return list, nil
}

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

const verifyLimit = 25 * time.Second

type verified struct {
	Site  string       `json:"site"`
	PID   int          `json:"node_pid"`
	Host  string       `json:"host,omitempty"` // of the node, if each host of its site has one
	Files []links.File `json:"files"`
	Error string       `json:"error,omitempty"` // why there is no report
}

func (o *pluginOptions) ofJobs() bool { return o.job != "" || o.all }

// verifyJobs makes the nodes of running jobs check the files of their plugins, on all hosts of the
// sites that have a node here.
func verifyJobs(o *pluginOptions, std streams) error {
	found := links.Survey(context.Background(), host.RunDirs(o.runDir, os.Geteuid()), 2*time.Second, links.Request{})
	found = slices.DeleteFunc(found, func(f links.FoundNode) bool { return !links.IsCalled(o.job, f.About.Job, f.About.ID) })
	if len(found) == 0 {
		return fmt.Errorf("no running job here is called %q; impi-node links lists the jobs", o.job)
	}
	results := make([]verified, 0, len(found))
	bad := false
	for _, f := range found {
		v := verifyAt(&f)
		bad = bad || v.Error != "" || slices.ContainsFunc(v.Files, func(x links.File) bool { return x.Error != "" })
		results = append(results, v)
	}
	if o.json {
		if err := cmdline.WriteJSON(std.out, map[string]any{"nodes": results}); err != nil {
			return err
		}
	} else {
		for _, v := range results {
			v.write(std)
		}
	}
	if bad {
		return errBad
	}
	return nil
}

func verifyAt(f *links.FoundNode) verified {
	v := verified{Site: f.About.Site, PID: f.About.PID, Host: f.About.Host, Files: []links.File{}}
	a, err := f.Ask(verifyLimit, links.Request{Op: links.OpVerify, Host: f.About.Host, Number: f.About.Number + 1})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		v.Error = err.Error()
	}
	v.Files = append(v.Files, a.Files...)
	return v
}

func (v *verified) write(std streams) {
	where := "site " + v.Site
	if v.Host != "" {
		where += ", host " + v.Host
	}
	if v.Error != "" {
		fmt.Fprintf(std.err, "%s: %s\n", where, v.Error)
		return
	}
	if len(v.Files) == 0 {
		fmt.Fprintf(std.out, "%s: all transports are built in\n", where)
	}
	for _, x := range v.Files {
		switch {
		case x.Error != "":
			fmt.Fprintf(std.err, "%s: %s: %s: %s\n", where, x.Transport, x.Path, x.Error)
		case x.Trusted != "":
			fmt.Fprintf(std.out, "%s: %s: %s is the file that the job file trusts\n", where, x.Transport, x.Path)
		default:
			fmt.Fprintf(std.out, "%s: %s: %s has sha256 %s\n", where, x.Transport, x.Path, x.SHA256)
		}
	}
}

func pluginsTry(o *pluginOptions, std streams) error {
	p, err := o.find(o.args[0])
	if err != nil {
		return err
	}
	ctx, stop := cmdline.Interruptible()
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
