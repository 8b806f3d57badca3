// Package status is the command impi-node status: how far the procs of running jobs are, and what
// they wait for.
package status

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

// Help is the text of its -h.
//
//go:embed help.txt
var Help string

// Schema is the version of a Report as JSON. Adding fields does not change it.
const Schema = 1

// Report is what the command prints as JSON.
type Report struct {
	Schema int   `json:"schema"`
	Jobs   []Job `json:"jobs"`
}

// Job is what the nodes that were asked know of a job.
type Job struct {
	links.Job
	Deadlock *Deadlock   `json:"probable_deadlock,omitempty"`
	Rates    []PairRates `json:"rates,omitempty"` // with -watch, from the second time on
}

// Exit statuses of the command, which are those of impi-node links.
const (
	statusOK      = 0
	statusNoJob   = 1
	statusUsage   = 2
	statusPartial = 3 // a node did not answer
)

type options struct {
	json, here, watch, help bool
	job, runDir, user       string
	pid, uid                int
	deadline, every         time.Duration
}

func parse(command string, args []string) (*options, error) {
	o := &options{uid: os.Geteuid()}
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.here, "here", false, "")
	f.BoolVar(&o.watch, "watch", false, "")
	f.StringVar(&o.job, "job", "", "")
	f.StringVar(&o.runDir, "run-dir", "", "")
	f.StringVar(&o.user, "user", "", "")
	f.IntVar(&o.pid, "pid", 0, "")
	f.DurationVar(&o.deadline, "deadline", 2*time.Second, "")
	f.DurationVar(&o.every, "every", time.Second, "")
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
	case o.every != time.Second && command == "status" && !o.watch:
		return nil, errors.New("-every is for -watch")
	case o.every < minEvery:
		return nil, fmt.Errorf("-every %v: the least is %v", o.every, minEvery)
	case o.user != "":
		o.uid, err = links.UserID(o.user)
	}
	return o, err
}

// minEvery is the least time between two looks of -watch: each stops the procs for some
// microseconds.
const minEvery = 100 * time.Millisecond

// Run runs the command and returns its exit status.
func Run(args []string, out, errs io.Writer) int {
	o, err := parse("status", args)
	switch {
	case err != nil:
		fmt.Fprintf(errs, "impi-node status: %v\nTry: impi-node help status\n", err)
		return statusUsage
	case o.help:
		fmt.Fprint(out, Help)
		return statusOK
	}
	if !o.watch {
		return o.show(o.ask(), out, errs, "")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	before := ""
	if f, ok := out.(*os.File); ok && isTerminal(f) {
		before = clearScreen
	}
	for last := (*look)(nil); ; {
		now := &look{o.ask(), time.Now()}
		r := now.report
		for i := range r.Jobs {
			if j := &r.Jobs[i]; last.job(j) != nil {
				j.Rates = ratesOf(j, last.job(j), now.since(last))
			}
		}
		first := last == nil
		last = now
		if len(r.Jobs) == 0 && !first {
			if !o.json {
				fmt.Fprintln(out, "no job any more")
			}
			return statusOK
		}
		if s := o.show(r, out, errs, before); s == statusNoJob {
			return s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return statusOK
		}
	}
}

// Nothing is the message if no job was found.
const Nothing = "no such job of this user runs on this machine (XDG_RUNTIME_DIR and TMPDIR must be the same as where the job was started)"

// clearScreen clears a terminal and begins at its top.
const clearScreen = "\x1b[H\x1b[2J"

// show prints what a look has found, after before unless it prints JSON.
func (o *options) show(r *Report, out, errs io.Writer, before string) int {
	if len(r.Jobs) == 0 {
		fmt.Fprintf(errs, "impi-node status: %s\n", Nothing)
		return statusNoJob
	}
	if o.json {
		e := json.NewEncoder(out)
		if !o.watch {
			e.SetIndent("", "  ")
		}
		if e.Encode(r) != nil {
			return statusPartial
		}
		return r.status()
	}
	fmt.Fprint(out, before)
	write(out, r)
	return r.status()
}

// ask asks the nodes.
func (o *options) ask() *Report {
	all := Look(context.Background(), host.RunDirs(o.runDir, o.uid), o.deadline, links.Request{Op: links.OpLinks, Here: o.here, Sites: !o.here, Calls: true})
	r := &Report{Schema: Schema, Jobs: []Job{}}
	for _, j := range all {
		if links.IsCalled(o.job, j.Name, j.ID) && (o.pid == 0 || j.HasPID(o.pid)) {
			r.Jobs = append(r.Jobs, j)
		}
	}
	return r
}

// Look asks the nodes of run directories, each for at most limit, and returns their jobs.
func Look(ctx context.Context, dirs []string, limit time.Duration, r links.Request) (jobs []Job) {
	for _, j := range links.Merge(links.Survey(ctx, dirs, limit, r)) {
		jobs = append(jobs, Job{Job: j, Deadlock: findDeadlock(&j)})
	}
	return jobs
}

// Describe returns a proc's state in a word, and what it does in a few.
func Describe(x *links.Proc) (state, what string) {
	what = does(x)
	if x.Blocked != nil {
		what = waitsIn(x.Blocked)
	}
	return stateOf(x), oneLine(what)
}

func (r *Report) status() int {
	for _, j := range r.Jobs {
		if slices.ContainsFunc(j.Sites, func(s links.Part) bool { return s.Problem != "" }) {
			return statusPartial
		}
	}
	return statusOK
}
