package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

// Exit statuses of impi-node links in addition to 0 and statusUsage.
const (
	statusNoJob   = 1 // no running job was found
	statusPartial = 3 // a node did not answer
)

//go:embed help/links.txt
var linksHelp string

// linksOptions are the command line of impi-node links.
type linksOptions struct {
	explain, measure, json, all, here, help bool
	job, runDir, user                       string
	pid, uid                                int
	deadline                                time.Duration
}

func parseLinks(args []string) (*linksOptions, error) {
	o := &linksOptions{uid: os.Geteuid()}
	f := flag.NewFlagSet("links", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&o.explain, "explain", false, "")
	f.BoolVar(&o.measure, "measure", false, "")
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.all, "all", false, "")
	f.BoolVar(&o.here, "here", false, "")
	f.StringVar(&o.job, "job", "", "")
	f.StringVar(&o.runDir, "run-dir", "", "")
	f.StringVar(&o.user, "user", "", "")
	f.IntVar(&o.pid, "pid", 0, "")
	f.DurationVar(&o.deadline, "deadline", 2*time.Second, "")
	rest, err := cmdline.ParseMixed(f, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		o.help = true
		return o, nil
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, fmt.Errorf("%q: this command takes only flags; name a job with -job %s", rest[0], rest[0])
	case o.deadline <= 0:
		return nil, fmt.Errorf("-deadline %v: it must be positive", o.deadline)
	case o.user != "":
		o.uid, err = links.UserID(o.user)
	}
	return o, err
}

// fewPairs is the number of pairs up to which a node also shows unused ones.
const fewPairs = 16

// showLinks runs impi-node links.
func showLinks(args []string, std streams) int {
	o, err := parseLinks(args)
	switch {
	case err != nil:
		fmt.Fprintf(std.err, "impi-node links: %v\nTry: impi-node help links\n", err)
		return statusUsage
	case o.help:
		fmt.Fprint(std.out, linksHelp)
		return statusOK
	}
	found := links.Survey(context.Background(), host.RunDirs(o.runDir, o.uid), o.deadline, links.Request{All: o.all, Few: fewPairs, Here: o.here})
	jobs := slices.DeleteFunc(links.Merge(found), func(j links.Job) bool { return !o.wants(&j) })
	if len(jobs) == 0 {
		fmt.Fprintf(std.err, "impi-node links: %s\n", o.nothing(len(found)))
		return statusNoJob
	}
	if o.measure || o.explain {
		links.MeasureAll(context.Background(), jobs, found, o.deadline, o.explain)
	}
	report := links.Report{Schema: links.Schema, Jobs: jobs}
	for i := range jobs {
		links.Advise(&jobs[i])
	}
	if err := o.print(std.out, &report); err != nil {
		fmt.Fprintf(std.err, "impi-node links: %v\n", err)
		return statusPartial
	}
	return linksStatus(jobs)
}

// wants reports whether the options select a job.
func (o *linksOptions) wants(j *links.Job) bool {
	return links.IsCalled(o.job, j.Name, j.ID) && (o.pid == 0 || j.HasPID(o.pid))
}

// nothing returns the message if no job was found, with hints where it may be.
func (o *linksOptions) nothing(nodes int) string {
	switch {
	case o.job != "" && nodes > 0:
		return fmt.Sprintf("no job %q runs here; impi-node links lists the jobs that do", o.job)
	case o.pid != 0 && nodes > 0:
		return fmt.Sprintf("process %d is not a node, launcher or proc of a job here; impi-node links lists those", o.pid)
	case o.runDir != "":
		return "no job runs with its run directories in " + o.runDir
	}
	return "no job of this user runs on this machine (XDG_RUNTIME_DIR and TMPDIR must be the same as where the job was started)"
}

func (o *linksOptions) print(w io.Writer, r *links.Report) error {
	if o.json {
		return writeJSON(w, r)
	}
	links.WriteText(w, r, links.Style{Explain: o.explain, Now: time.Now()})
	return nil
}

// linksStatus returns the exit status for the jobs that were found.
func linksStatus(jobs []links.Job) int {
	for _, j := range jobs {
		for _, s := range j.Sites {
			if s.Problem != "" {
				return statusPartial
			}
		}
	}
	return statusOK
}
