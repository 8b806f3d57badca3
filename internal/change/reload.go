// Package change has the commands of impi-node that change a job while it runs.
package change

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

// ReloadHelp is the text of impi-node reload -h.
//
//go:embed reload.txt
var ReloadHelp string

// Exit statuses.
const (
	statusOK     = 0
	statusFailed = 1 // nothing or only a part has changed
)

// common are the flags by which a command finds jobs.
type common struct {
	json     bool
	job      string
	all      bool
	runDir   string
	deadline time.Duration
}

func (o *common) command(name, help string) *cmdline.Command {
	f := cmdline.NewFlags()
	f.BoolVar(&o.json, "json", false, "")
	f.StringVar(&o.job, "job", "", cmdline.Job)
	f.StringVar(&o.runDir, "run-dir", "", cmdline.Dir)
	f.DurationVar(&o.deadline, "deadline", 25*time.Second, "")
	return &cmdline.Command{Name: name, Help: help, Flags: f, Check: o.check}
}

func (o *common) check([]string) error {
	switch {
	case o.job != "" && o.all:
		return errors.New("give either -job or -all")
	case o.deadline <= 0:
		return fmt.Errorf("-deadline %v: it must be positive", o.deadline)
	}
	return nil
}

const surveyTime = 2 * time.Second

// find returns the nodes on this machine that are of the selected job, or of the only one there is.
// What a job has spawned is part of it.
func (o *common) find() ([]links.FoundNode, error) {
	found := links.Survey(context.Background(), host.RunDirs(o.runDir, os.Geteuid()), surveyTime, links.Request{Here: true})
	found = slices.DeleteFunc(found, func(f links.FoundNode) bool {
		return strings.Contains(f.About.Job, "/") || !links.IsCalled(o.job, f.About.Job, f.About.ID)
	})
	jobs := links.ByJob(found)
	switch {
	case len(jobs) == 0 && o.job != "":
		return nil, fmt.Errorf("no running job here is called %q; impi-node links lists the jobs", o.job)
	case len(jobs) == 0:
		return nil, links.NoJob("", o.runDir)
	case len(jobs) > 1 && !o.all:
		var names []string
		for _, j := range jobs {
			names = append(names, fmt.Sprintf("%s (ID %s, node %d)", j[0].About.Job, cmp.Or(j[0].About.ID, "not known yet"), j[0].About.PID))
		}
		return nil, cmdline.UsageError(fmt.Errorf("%d jobs run here; choose one by -job ID, or all by -all: %s", len(jobs), strings.Join(names, ", ")))
	}
	return found, nil
}

func bySite(found []links.FoundNode) (list []links.FoundNode) {
	for _, f := range found {
		if !slices.ContainsFunc(list, func(x links.FoundNode) bool {
			return x.About.ID == f.About.ID && x.About.Client == f.About.Client && x.About.Job == f.About.Job
		}) {
			list = append(list, f)
		}
	}
	return list
}

type result struct {
	Job   string             `json:"job"`
	Site  string             `json:"site"`
	Hosts []links.FileReload `json:"hosts,omitempty"`
	Error string             `json:"error,omitempty"`
}

// failed reports whether something is wrong at a host, so that nothing has changed or not all.
func (r *result) failed() bool {
	return r.Error != "" || slices.ContainsFunc(r.Hosts, func(h links.FileReload) bool { return h.Failed() || !h.Applied })
}

// ReloadCommand returns impi-node reload.
func ReloadCommand() *cmdline.Command {
	o := &common{}
	c := o.command("reload", ReloadHelp)
	c.Flags.BoolVar(&o.all, "all", false, "")
	c.Run = o.reload
	return c
}

func (o *common) reload(_ []string, out, errs io.Writer) (int, error) {
	found, err := o.find()
	if err != nil {
		return statusFailed, err
	}
	var results []result
	status := statusOK
	for _, f := range bySite(found) { // one after the other, so that no two renew a pair's links at once
		r := result{Job: f.About.Job, Site: f.About.Site}
		if a, err := ask(&f, o.deadline, links.Request{Op: links.OpReread}); err != nil {
			r.Error = err.Error()
		} else {
			r.Hosts = a.Rereads
		}
		if r.failed() {
			status = statusFailed
		}
		results = append(results, r)
	}
	if o.json {
		return printJSON(map[string]any{"reloads": results}, status, out)
	}
	for _, r := range results {
		r.print(out, errs)
	}
	return status, nil
}

func ask(f *links.FoundNode, limit time.Duration, r links.Request) (*links.Answer, error) {
	if f.Err != nil {
		return nil, f.Err
	}
	return f.Ask(limit, r)
}

func printJSON(v any, status int, out io.Writer) (int, error) {
	if err := cmdline.WriteJSON(out, v); err != nil {
		return statusFailed, err
	}
	return status, nil
}

// print writes what has changed, and on errs what is wrong. Lines that are the same at all hosts
// are written once.
func (r *result) print(out, errs io.Writer) {
	title := "site " + r.Site
	if r.Error != "" {
		fmt.Fprintf(errs, "%s: %s\n", title, r.Error)
		return
	}
	each(out, title, r.Hosts, func(h *links.FileReload) []string { return h.Changes }, "")
	each(out, title, r.Hosts, func(h *links.FileReload) []string { return h.Restart }, ": needs a restart")
	each(errs, title, r.Hosts, func(h *links.FileReload) []string { return h.Faults }, "")
	each(errs, title, r.Hosts, func(h *links.FileReload) []string {
		if h.Problem == "" {
			return nil
		}
		return []string{h.Problem}
	}, "")
	applied := slices.ContainsFunc(r.Hosts, func(h links.FileReload) bool { return h.Applied })
	same := !slices.ContainsFunc(r.Hosts, func(h links.FileReload) bool { return len(h.Changes)+len(h.Restart) > 0 })
	switch {
	case r.failed() && applied:
		fmt.Fprintf(errs, "%s: not all hosts have changed; correct that and reload again\n", title)
	case r.failed():
		fmt.Fprintf(errs, "%s: nothing has changed\n", title)
	case same:
		fmt.Fprintf(out, "%s: %s says what it said before\n", title, r.Hosts[0].File)
	}
}

// each writes the lines of hosts, each line once, with the names of the hosts that have it unless
// all do.
func each(w io.Writer, title string, hosts []links.FileReload, lines func(*links.FileReload) []string, end string) {
	var order []string
	who := make(map[string][]string)
	for i := range hosts {
		for _, l := range lines(&hosts[i]) {
			if who[l] == nil {
				order = append(order, l)
			}
			who[l] = append(who[l], hosts[i].Host)
		}
	}
	for _, l := range order {
		at := title
		if names := who[l]; len(names) < len(hosts) {
			at += ", host " + strings.Join(names, ", ")
		}
		fmt.Fprintf(w, "%s: %s%s\n", at, l, end)
	}
}
