package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

const reloadLimit = 25 * time.Second

type reloaded struct {
	PID  int    `json:"node_pid"`
	Host string `json:"host,omitempty"` // of the node, if each host of its site has one
	*links.PluginReload
	Error string `json:"error,omitempty"`
}

func pluginsReload(o *pluginOptions, std streams) error {
	name := o.args[0]
	var results []reloaded
	found := links.Survey(context.Background(), host.RunDirs(o.runDir, os.Geteuid()), 2*time.Second, links.Request{})
	if o.job != "" && !slices.ContainsFunc(found, func(f links.FoundNode) bool { return links.IsCalled(o.job, f.About.Job, f.About.ID) }) {
		return fmt.Errorf("no running job here is called %q; impi-node links lists the jobs", o.job)
	}
	found = slices.DeleteFunc(found, func(f links.FoundNode) bool { return !o.concerns(&f, name) })
	if len(found) == 0 {
		return fmt.Errorf("no running job here has the transport %q; impi-node links lists the jobs", name)
	}
	if jobs := links.ByJob(found); len(jobs) > 1 && !o.all {
		return cmdline.UsageError(whichJob(jobs, name))
	}
	for _, f := range found { // one after the other: two new processes must not resume a link at once
		results = append(results, reloadAt(&f, links.Request{Op: links.OpReload, Transport: name, Force: o.force, Host: f.About.Host, Number: f.About.Number + 1}))
	}
	bad := false
	for _, r := range results {
		bad = bad || r.Error != ""
	}
	if o.json {
		if err := cmdline.WriteJSON(std.out, map[string]any{"reloads": results}); err != nil {
			return err
		}
	} else {
		printReloads(std, results)
	}
	if bad {
		return errBad
	}
	return nil
}

func (o *pluginOptions) concerns(f *links.FoundNode, transport string) bool {
	if !links.IsCalled(o.job, f.About.Job, f.About.ID) {
		return false
	}
	if f.Node == nil { // this node did not answer; without a job only -all selects it
		return f.Err != nil && (f.About.Job != "" || o.all)
	}
	return slices.ContainsFunc(f.Node.Transports, func(t links.Transport) bool { return t.Name == transport })
}

func whichJob(jobs [][]links.FoundNode, transport string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d jobs here have the transport %q; choose one by -job ID, or all by -all:", len(jobs), transport)
	for _, j := range jobs {
		var sites []string
		for _, f := range j {
			sites = append(sites, f.About.Site)
		}
		sites = slices.Compact(sites)
		id := cmp.Or(j[0].About.ID, "not known yet")
		fmt.Fprintf(&b, "\n  job %s, ID %s, sites %s (node %d)", j[0].About.Job, id, strings.Join(sites, ", "), j[0].About.PID)
	}
	return errors.New(b.String())
}

func reloadAt(f *links.FoundNode, r links.Request) reloaded {
	a, err := f.Ask(reloadLimit, r)
	if err == nil && a.Reload == nil {
		err = errors.New("the node's answer says nothing about the reload")
	}
	if err != nil {
		return reloaded{PID: f.About.PID, Host: f.About.Host, Error: err.Error()}
	}
	return reloaded{PID: f.About.PID, Host: f.About.Host, PluginReload: a.Reload}
}

func printReloads(std streams, results []reloaded) {
	for _, r := range results {
		if r.Error != "" {
			who := fmt.Sprintf("node %d", r.PID)
			if r.Host != "" {
				who = "host " + r.Host
			}
			fmt.Fprintf(std.err, "%s: %s\n", who, r.Error)
			if strings.Contains(r.Error, "would be lost") {
				fmt.Fprintln(std.err, "  with resume = true in the route they would survive; -force loses them")
			}
			continue
		}
		where := r.Site
		if r.Host != "" {
			where += ", host " + r.Host
		}
		fmt.Fprintf(std.out, "site %s: %s %s, process %d, replaced by %s, process %d", where, r.Transport, r.Before.Version, r.Before.PID, r.After.Version, r.After.PID)
		if r.Before.SHA256 != r.After.SHA256 {
			fmt.Fprintf(std.out, " (sha256 %.12s, was %.12s)", r.After.SHA256, r.Before.SHA256)
		}
		switch {
		case r.Lost > 0:
			fmt.Fprintf(std.out, "; %d links were lost", r.Lost)
		case r.Resuming > 0:
			fmt.Fprintf(std.out, "; %d links are resumed", r.Resuming)
		}
		fmt.Fprintln(std.out)
	}
}
