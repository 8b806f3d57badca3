// Package status is the command impi-node status: how far the procs of running jobs are, and what
// they wait for.
package status

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
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

	Ended []Ended `json:"ended,omitempty"` // with -watch: jobs that an earlier look has found
}

// Job is what the nodes that were asked report of a job.
type Job struct {
	links.Job
	Deadlock  *Deadlock          `json:"probable_deadlock,omitempty"`
	Elsewhere *WaitsForOtherJobs `json:"depends_on_worlds,omitempty"`
	UnderWay  []UnderWay         `json:"under_way,omitempty"`  // messages under way: why there is no deadlock, though all procs wait
	Rates     []PairRates        `json:"rates,omitempty"`      // with -watch, from the second time on
	Hosts     []PairRates        `json:"host_rates,omitempty"` // as Rates, between hosts, of all procs

	lines []line // the links
}

// Exit statuses of the command, the same as of impi-node links.
const (
	statusOK      = 0
	statusNoJob   = 1
	statusPartial = 3 // a node did not answer
	statusFailed  = 4 // a job that was watched has failed
)

type options struct {
	*links.Selection
	json, here, watch bool
	every             time.Duration

	limit time.Duration // that nodes had in the last look
	note  io.Writer     // is told for whom a look waits
}

func newCommand(name, help string) (*cmdline.Command, *options) {
	o := &options{Selection: links.NewSelection(), note: io.Discard}
	c := &cmdline.Command{Name: name, Help: help, Flags: cmdline.NewFlags()}
	o.AddFlags(c)
	o.AddPIDAndDeadline(c)
	c.Flags.BoolVar(&o.here, "here", false, "")
	c.Flags.Func("every", "", func(text string) (err error) {
		if o.every, err = time.ParseDuration(text); err == nil && o.every < minEvery {
			err = fmt.Errorf("the least is %v", minEvery)
		}
		return err
	})
	return c, o
}

func (o *options) interval() time.Duration { return cmp.Or(o.every, time.Second) }

// minEvery is the least time between two looks of -watch: each stops the procs for some
// microseconds.
const minEvery = 100 * time.Millisecond

// Command returns impi-node status.
func Command() *cmdline.Command {
	c, o := newCommand("status", Help)
	c.Flags.BoolVar(&o.json, "json", false, "")
	c.Flags.BoolVar(&o.watch, "watch", false, "")
	c.Run = o.run
	return c
}

func (o *options) run(_ []string, out, errw io.Writer) (int, error) {
	o.note = errw
	if !o.watch {
		if o.every != 0 {
			return 0, cmdline.UsageError(errors.New("-every is for -watch"))
		}
		return o.show(o.ask(context.Background()), out, "")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tick := time.NewTicker(o.interval())
	defer tick.Stop()
	before := ""
	if f, ok := out.(*os.File); ok && isTerminal(f) {
		before = clearScreen
	}
	var motion StallTracker
	ends := o.follow()
	defer ends.close()
	for last := (*look)(nil); ; {
		now := &look{o.ask(ctx), time.Now()}
		if ctx.Err() != nil {
			return statusOK, nil
		}
		r := now.report
		motion.Update(r.Jobs, now.at)
		r.Ended = ends.update(r.Jobs)
		for i := range r.Jobs {
			if j := &r.Jobs[i]; last.job(j) != nil {
				j.rate(last.job(j), now.since(last))
			}
		}
		first := last == nil
		last = now
		if len(r.Jobs) == 0 && !first {
			return r.status(), o.showEnd(r, out)
		}
		if s, err := o.show(r, out, before); s == statusNoJob {
			return s, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return statusOK, nil
		}
	}
}

const clearScreen = "\x1b[H\x1b[2J"

// show prints what a look has found, after before unless it prints JSON.
func (o *options) show(r *Report, out io.Writer, before string) (int, error) {
	if len(r.Jobs) == 0 {
		return statusNoJob, links.NoJob(o.Job, o.RunDir)
	}
	if o.json {
		e := json.NewEncoder(out)
		if !o.watch {
			e.SetIndent("", "  ")
		}
		if err := e.Encode(r); err != nil {
			return statusPartial, err
		}
		return r.status(), nil
	}
	fmt.Fprint(out, before)
	write(out, r)
	if r.hasSilentNode() && o.limit < links.MaxDeadline {
		fmt.Fprintf(out, "\na node that does not answer within %v may only be slow, as where more procs than cores want to run: -deadline %v waits longer\n", o.limit, links.MaxDeadline)
	}
	return r.status(), nil
}

// hasSilentNode reports whether a node did not answer in time.
func (r *Report) hasSilentNode() bool {
	return slices.ContainsFunc(r.Jobs, func(j Job) bool {
		return slices.ContainsFunc(j.Sites, func(s links.SiteState) bool { return strings.Contains(s.Problem, links.ErrSilent.Error()) })
	})
}

// showEnd prints how the jobs have ended of which none is left.
func (o *options) showEnd(r *Report, out io.Writer) error {
	if o.json {
		return json.NewEncoder(out).Encode(r)
	}
	write(out, r)
	_, err := fmt.Fprintln(out, "no job any more")
	return err
}

func (o *options) ask(ctx context.Context) *Report {
	began := time.Now()
	found, limit := o.Survey(ctx, links.Request{Op: links.OpLinks, Here: o.here, Sites: !o.here, Calls: true, ByHost: true}, o.note)
	o.limit = limit
	r := &Report{Schema: Schema, Jobs: []Job{}}
	for _, j := range jobsOf(found, began) {
		if o.Includes(&j.Job) {
			r.Jobs = append(r.Jobs, j)
		}
	}
	return r
}

// AskNodes asks the nodes of run directories, each for at most limit, and returns their jobs.
func AskNodes(ctx context.Context, dirs []string, limit time.Duration, r links.Request) (jobs []Job) {
	began := time.Now()
	return jobsOf(links.Survey(ctx, dirs, limit, r), began)
}

// jobsOf returns the jobs of nodes that were asked since a time.
func jobsOf(found []links.FoundNode, began time.Time) (jobs []Job) {
	for _, j := range links.Merge(found) {
		x := Job{Job: j}
		findHolders(&x.Job)
		x.Deadlock, x.UnderWay = verdict(&x.Job)
		jobs = append(jobs, x)
	}
	names := make(map[string]string)
	for i := range jobs {
		names[jobs[i].World] = jobs[i].Name
	}
	for i := range jobs {
		jobs[i].Elsewhere = findElsewhere(&jobs[i].Job, names)
	}
	// The jobs were asked one after the other, so a proc must have waited since before that.
	findJoint(jobs, stuckAfter+time.Since(began))
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
		if slices.ContainsFunc(j.Sites, func(s links.SiteState) bool { return s.Problem != "" }) {
			return statusPartial
		}
	}
	if slices.ContainsFunc(r.Ended, func(e Ended) bool { return e.Failure != "" }) {
		return statusFailed
	}
	return statusOK
}
