package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/measured"
)

// Exit statuses of impi-node links in addition to 0 and statusUsage.
const (
	statusNoJob   = 1 // no running job was found
	statusPartial = 3 // a node did not answer
)

//go:embed help/links.txt
var linksHelp string

type linksOptions struct {
	*links.Selection
	explain, measure, json, all, here bool

	keep string
}

func linksCommand() *cmdline.Command {
	o := &linksOptions{Selection: links.NewSelection()}
	c := &cmdline.Command{Name: "links", Help: linksHelp, Flags: cmdline.NewFlags(), Run: o.run}
	o.AddFlags(c)
	o.AddPIDAndDeadline(c)
	c.Flags.BoolVar(&o.explain, "explain", false, "")
	c.Flags.BoolVar(&o.measure, "measure", false, "")
	c.Flags.StringVar(&o.keep, "keep", "", "")
	c.Flags.BoolVar(&o.json, "json", false, "")
	c.Flags.BoolVar(&o.all, "all", false, "")
	c.Flags.BoolVar(&o.here, "here", false, "")
	return c
}

// fewPairs is the number of pairs up to which a node also shows unused ones.
const fewPairs = 16

func (o *linksOptions) run(_ []string, out, errw io.Writer) (int, error) {
	if o.keep != "" && !o.measure {
		return statusUsage, errors.New("-keep keeps what -measure measures: give both")
	}
	found, _ := o.Survey(context.Background(), links.Request{All: o.all, AllUpTo: fewPairs, Here: o.here, Sites: !o.here}, errw)
	jobs := slices.DeleteFunc(links.Merge(found), func(j links.Job) bool { return !o.Includes(&j) })
	if len(jobs) == 0 {
		return statusNoJob, errors.New(o.nothing(len(found)))
	}
	if o.measure || o.explain {
		links.MeasureAll(context.Background(), jobs, found, o.Deadline, o.explain)
	}
	var kept []measured.Pair
	if o.keep != "" {
		var err error
		if kept, err = keep(o.keep, jobs, time.Now()); err != nil {
			return statusPartial, err
		}
	}
	report := links.Report{Schema: links.Schema, Jobs: jobs}
	for i := range jobs {
		links.Advise(&jobs[i])
	}
	if err := o.print(out, &report); err != nil {
		return statusPartial, err
	}
	for _, p := range kept {
		fmt.Fprintf(errw, "impi-node links: kept in %s: between %s and %s a round trip of %s and %.0f Mb/s\n",
			o.keep, p.A, p.B, links.Duration(time.Duration(p.RTT*float64(time.Millisecond))), p.Rate)
	}
	return linksStatus(jobs), nil
}

// keep adds what was measured between sites to a file, for protocol { measured } of later jobs. It
// returns what it has added.
func keep(path string, jobs []links.Job, now time.Time) (kept []measured.Pair, err error) {
	f, err := measured.Read(path)
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		for _, p := range jobs[i].Pairs {
			if s := p.Speed; s != nil && s.How == links.HowProbe && s.Problem == "" && p.SiteA != p.SiteB && p.SiteA != "" && p.SiteB != "" {
				added := f.Add(p.SiteA, p.SiteB, 2*s.HalfTrip, s.Rate, now)
				kept = slices.DeleteFunc(kept, func(q measured.Pair) bool { return q.A == added.A && q.B == added.B }) // like f.Add
				kept = append(kept, added)
			}
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("nothing was measured between two sites, so that %s stays as it is: try again with -all and a longer -deadline, while procs of two sites have direct links", path)
	}
	return kept, f.Write(path)
}

func (o *linksOptions) nothing(nodes int) string {
	switch {
	case o.Job != "" && nodes > 0:
		return fmt.Sprintf("no job %q runs here; impi-node links lists the jobs that do", o.Job)
	case o.PID != 0 && nodes > 0:
		return fmt.Sprintf("process %d is not a node, launcher or proc of a job here; impi-node links lists those", o.PID)
	}
	return links.NoJob("", o.RunDir).Error()
}

func (o *linksOptions) print(w io.Writer, r *links.Report) error {
	if o.json {
		return cmdline.WriteJSON(w, r)
	}
	links.WriteText(w, r, links.Style{Explain: o.explain, Now: time.Now()})
	return nil
}

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
