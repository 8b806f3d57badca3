package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// WaitingProc is a proc of one of several worlds that wait for each other.
type WaitingProc struct {
	Job  string `json:"job"` // name
	ID   string `json:"id"`
	Rank int    `json:"rank"`
}

// at is a proc: the index of its job in a list, and its rank.
type at struct{ job, rank int }

// findJoint finds jobs whose procs wait for each other across their worlds, and sets their
// deadlock. It is one only if every proc of these jobs has waited for least or longer, if the procs
// that it waits for are known and all of these jobs, and if nothing is known to be under way.
func findJoint(jobs []Job, least time.Duration) {
	known := make(map[string]int) // by world
	for i := range jobs {
		if w := jobs[i].World; w != "" {
			known[w] = i
		}
	}
	waits := make([]map[int]*links.Blocked, len(jobs))
	for i := range jobs {
		if jobs[i].Elsewhere != nil {
			waits[i] = waitsForNamed(&jobs[i].Job, least)
		}
	}
	for i := range jobs {
		if group := together(i, waits, known); len(group) > 1 && jobs[i].Deadlock == nil && !connecting(jobs, group, known, least) {
			d := &Deadlock{For: -1, WaitingProcs: cycleAcross(group, jobs, waits, known)}
			for _, k := range group {
				d.Jobs = append(d.Jobs, jobs[k].Name)
				for _, b := range waits[k] {
					if d.For < 0 || b.Time < d.For {
						d.For = b.Time
					}
				}
			}
			for _, k := range group {
				jobs[k].Deadlock, jobs[k].Elsewhere = d, nil
			}
		}
	}
}

// waitsForNamed returns what the procs of a job wait for, by rank. It returns nil if one of them
// does not wait, or if procs that it does not name may wake it. findElsewhere has found that all
// procs have answered.
func waitsForNamed(j *links.Job, least time.Duration) map[int]*links.Blocked {
	procs := make(map[int]*links.Blocked)
	leaving := 0
	for i := range j.Sites {
		for k := range j.Sites[i].Ranks {
			p := &j.Sites[i].Ranks[k]
			if over(p) {
				continue
			}
			b := p.Blocked
			if p.State != links.ProcRunning || !still(b) || b.Time < least || b.Left > 0 || len(b.Partners) == 0 || slices.ContainsFunc(b.Calls, waitsElsewhere) {
				return nil
			}
			if slices.ContainsFunc(b.Partners, func(p links.Partner) bool { return p.OtherWorld && p.Any }) {
				return nil
			}
			if slices.ContainsFunc(b.Calls, finalizes) {
				leaving++
			}
			procs[p.Rank] = b
		}
	}
	for rank, b := range procs {
		if !locksAreHeld(rank, b, procs) {
			return nil
		}
	}
	if leaving == len(procs) || len(underWay(j)) > 0 {
		return nil
	}
	if hosts, more := LinksOfHosts(j); more {
		untold := 0
		if len(betweenHosts(hosts, &untold)) > 0 || untold > 0 {
			return nil
		}
	}
	return procs
}

// together returns the jobs that job first waits for, itself included, or nil if one of them is not
// known, or does not wait.
func together(first int, waits []map[int]*links.Blocked, known map[string]int) []int {
	group := []int{first}
	for n := 0; n < len(group); n++ {
		if waits[group[n]] == nil {
			return nil
		}
		for _, b := range waits[group[n]] {
			for _, p := range b.Partners {
				if !p.OtherWorld {
					continue
				}
				i, ok := known[p.World]
				if !ok {
					return nil
				}
				if !slices.Contains(group, i) {
					group = append(group, i)
				}
			}
		}
	}
	slices.Sort(group)
	return group
}

// settled is the time after which both ends know that a link between worlds was made, or has ended.
const settled = 3 * time.Second

// connecting reports whether a link between procs of some jobs and other worlds may be changing:
// it is being made, was made or has ended just now, or only one end has it. Then no deadlock is
// certain: procs that outlive the loss of others ask for another link in place of a lost one, and
// wait meanwhile as before.
func connecting(jobs []Job, group []int, known map[string]int, least time.Duration) bool {
	return slices.ContainsFunc(group, func(i int) bool {
		return len(jobs[i].WorldLinks) >= links.MaxViews || slices.ContainsFunc(jobs[i].WorldLinks, func(l links.WorldLink) bool {
			switch {
			case time.Since(l.Since) < max(least, settled):
				return true
			case l.State == links.StateEnded:
				return false
			case l.State != links.StateLinked:
				return true
			}
			k, ok := known[l.World]
			return ok && slices.Contains(group, k) && !slices.ContainsFunc(jobs[k].WorldLinks, func(r links.WorldLink) bool {
				return r.State == links.StateLinked && r.World == jobs[i].World && r.Local == l.Peer && r.Peer == l.Local
			})
		})
	})
}

// cycleAcross returns procs each of which waits for the next one, and the last one for the first,
// or nil if only receives from any source close the circle.
func cycleAcross(group []int, jobs []Job, waits []map[int]*links.Blocked, known map[string]int) (steps []WaitingProc) {
	next := func(x at) (list []at) {
		b := waits[x.job][x.rank]
		if b == nil {
			return nil
		}
		for _, p := range b.Partners {
			switch {
			case p.Any:
			case p.OtherWorld:
				list = append(list, at{known[p.World], p.Peer})
			case p.What == links.WantsLock:
				for _, h := range p.Holders {
					list = append(list, at{x.job, h})
				}
			default:
				list = append(list, at{x.job, p.Peer})
			}
		}
		return list
	}
	var begin []at
	for _, i := range group {
		for rank := range waits[i] {
			begin = append(begin, at{i, rank})
		}
	}
	slices.SortFunc(begin, func(a, b at) int { return slices.Compare([]int{a.job, a.rank}, []int{b.job, b.rank}) })
	for _, x := range circle(begin, next) {
		steps = append(steps, WaitingProc{jobs[x.job].Name, jobs[x.job].ID, x.rank})
	}
	return steps
}

// circle returns things each of which leads to the next one, and the last one to the first.
func circle[T comparable](begin []T, next func(T) []T) []T {
	done := make(map[T]bool)
	var way []T
	var visit func(x T) []T
	visit = func(x T) []T {
		if i := slices.Index(way, x); i >= 0 {
			return slices.Clone(way[i:])
		}
		if done[x] {
			return nil
		}
		done[x] = true
		way = append(way, x)
		defer func() { way = way[:len(way)-1] }()
		for _, y := range next(x) {
			if c := visit(y); c != nil {
				return c
			}
		}
		return nil
	}
	for _, x := range begin {
		if c := visit(x); c != nil {
			return c
		}
	}
	return nil
}

// AcrossText returns the cycle over several worlds as text, or "".
func (d *Deadlock) AcrossText(arrow string) string {
	if len(d.WaitingProcs) == 0 {
		return ""
	}
	twice := make(map[string]string) // IDs by names
	for _, x := range d.WaitingProcs {
		if id, ok := twice[x.Job]; ok && id != x.ID {
			twice[x.Job] = ""
		} else if !ok {
			twice[x.Job] = x.ID
		}
	}
	var s []string
	for _, x := range append(d.WaitingProcs, d.WaitingProcs[0]) {
		name := x.Job
		if twice[x.Job] == "" {
			name += " (" + x.ID + ")"
		}
		s = append(s, fmt.Sprintf("rank %d of %s", x.Rank, oneLine(name)))
	}
	return strings.Join(s, arrow)
}
