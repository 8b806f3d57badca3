package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// stuckAfter is how long a proc must have waited to be part of a deadlock.
const stuckAfter = time.Second

// Deadlock says that every proc of a job waits for another one, so that none of them goes on by
// itself. It is probable, not certain: another thread of a proc may sleep, and yet go on.
type Deadlock struct {
	For   time.Duration `json:"for_ns"`          // the shortest of the waits
	Cycle []int         `json:"cycle,omitempty"` // ranks, each waits for the next one, the last for the first; empty: there is none
}

// findDeadlock returns the deadlock of a job, or nil: also if a proc was not asked.
func findDeadlock(j *links.Job) *Deadlock {
	procs := make(map[int]*links.Blocked)
	size, leaving := 0, 0
	for i := range j.Sites {
		s := &j.Sites[i]
		size += s.Procs
		for k := range s.Ranks {
			p := &s.Ranks[k]
			switch {
			case p.State == links.ProcFinished || p.State == links.ProcEnded:
				size--
				continue
			case p.State != links.ProcRunning || p.Rank < 0 || !stuck(p.Blocked):
				return nil
			}
			procs[p.Rank] = p.Blocked
			if slices.ContainsFunc(p.Blocked.Calls, finalizes) {
				leaving++
			}
		}
	}
	if len(procs) == 0 || len(procs) != size || leaving == size { // if all are in Finalize, the job ends
		return nil
	}
	d := &Deadlock{For: -1, Cycle: cycle(procs)}
	for _, b := range procs {
		if d.For < 0 || b.Time < d.For {
			d.For = b.Time
		}
	}
	return d
}

// unheard are the ranks of which nothing is known, if all others wait for others, and nothing moves.
func unheard(j *links.Job) (ranks []int) {
	others := 0
	for i := range j.Sites {
		for k := range j.Sites[i].Ranks {
			switch p := &j.Sites[i].Ranks[k]; {
			case p.State == links.ProcFinished, p.State == links.ProcEnded:
			case p.State == links.ProcNotTold, p.State == links.ProcRunning && p.Silent != "":
				ranks = append(ranks, p.Rank)
			case p.State != links.ProcRunning, !stuck(p.Blocked):
				return nil
			default:
				others++
			}
		}
	}
	if others == 0 {
		return nil
	}
	return ranks
}

// few names the first ones of many ranks.
func few(ranks []int) string {
	const shown = 8
	var s []string
	for _, r := range ranks[:min(len(ranks), shown)] {
		s = append(s, strconv.Itoa(r))
	}
	text := strings.Join(s, ", ")
	if n := len(ranks) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// stuck reports whether a proc waits for others of its world, and nothing moves.
func stuck(b *links.Blocked) bool {
	return b != nil && !b.Computes && b.Time >= stuckAfter && len(b.Partners) > 0 && len(b.Calls) > 0 && !slices.ContainsFunc(b.Calls, waitsElsewhere) &&
		!slices.ContainsFunc(b.Partners, func(p links.Partner) bool { return p.Away || p.Why != "" && p.Why != whySyncAck })
}

// waitsElsewhere reports whether a call waits for procs of other worlds, or for a window, whoever
// its partners are.
func waitsElsewhere(c links.Call) bool {
	name := strings.ToLower(c.Name)
	for _, word := range []string{"accept", "connect", "spawn", "join", "win", "session"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func finalizes(c links.Call) bool { return strings.Contains(strings.ToLower(c.Name), "finalize") }

// whySyncAck is Partner.Why of a send that waits for its receive.
const whySyncAck = "SYNCACK"

// cycle returns procs of which each waits for the next one, and the last for the first. Those that
// wait for any proc wait for all.
func cycle(procs map[int]*links.Blocked) []int {
	ranks := make([]int, 0, len(procs))
	for r := range procs {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	done := make(map[int]bool)
	var way []int
	var visit func(rank int) []int
	visit = func(rank int) []int {
		if i := slices.Index(way, rank); i >= 0 {
			return slices.Clone(way[i:])
		}
		if done[rank] || procs[rank] == nil {
			return nil
		}
		done[rank] = true
		way = append(way, rank)
		defer func() { way = way[:len(way)-1] }()
		for _, p := range procs[rank].Partners {
			if p.Any {
				continue
			}
			if c := visit(p.Peer); c != nil {
				return c
			}
		}
		return nil
	}
	for _, r := range ranks {
		if c := visit(r); c != nil {
			return c
		}
	}
	return nil
}
