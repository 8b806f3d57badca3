package status

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// stuckAfter is how long a proc must have waited to be part of a deadlock.
const stuckAfter = time.Second

// Deadlock reports that every proc of a job waits for another one, so that none of them continues
// by itself. It is probable, not certain: another thread of a proc may sleep, and yet continue.
type Deadlock struct {
	For   time.Duration `json:"for_ns"`          // the shortest of the waits
	Cycle []int         `json:"cycle,omitempty"` // ranks, each waits for the next one, the last for the first; empty: no cycle

	// UnreportedPairs is the number of pairs of procs that no node reports, as there are too many:
	// messages may be under way between them.
	UnreportedPairs int `json:"pairs_not_told,omitempty"`

	// Jobs are the names of several jobs that wait for each other, if it is a deadlock over their
	// worlds. Across is then the cycle. What is under way between the worlds is not known.
	Jobs         []string      `json:"jobs,omitempty"`
	WaitingProcs []WaitingProc `json:"cycle_over_worlds,omitempty"`
}

// findDeadlock returns the deadlock of a job, or nil if there is none, a proc was not asked, or the
// job is about to end.
func findDeadlock(j *links.Job) *Deadlock {
	if ends(j) {
		return nil
	}
	procs := make(map[int]*links.Blocked)
	size, leaving := 0, 0
	for i := range j.Sites {
		s := &j.Sites[i]
		size += s.Procs
		for k := range s.Ranks {
			p := &s.Ranks[k]
			switch {
			case over(p):
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
	for rank, b := range procs {
		if !locksAreHeld(rank, b, procs) {
			return nil
		}
	}
	if len(procs) == 0 || len(procs) != size || leaving == size { // if all are in Finalize, the job ends
		return nil
	}
	d := &Deadlock{For: -1, Cycle: cycle(procs), UnreportedPairs: j.Left}
	for _, b := range procs {
		if d.For < 0 || b.Time < d.For {
			d.For = b.Time
		}
	}
	return d
}

// ends reports whether a job is about to end, so that those who wait will be told or killed: procs
// have passed MPI_Finalize, or one has ended without which the job does not go on. Where it does
// (survive = true), such a proc is lost.
func ends(j *links.Job) bool {
	return slices.ContainsFunc(j.Sites, func(s links.SiteState) bool {
		return s.State == links.NodeEnding || slices.ContainsFunc(s.Ranks, func(p links.Proc) bool { return p.State == links.ProcEnded })
	})
}

// over reports whether nothing will come from a proc any more.
func over(p *links.Proc) bool { return p.State == links.ProcFinished || p.State == links.ProcLost }

// unheard returns the ranks of which nothing is known, if all others wait for others and nothing
// moves.
func unheard(j *links.Job) (ranks []int) {
	others := 0
	if ends(j) {
		return nil
	}
	for i := range j.Sites {
		for k := range j.Sites[i].Ranks {
			switch p := &j.Sites[i].Ranks[k]; {
			case over(p):
			case p.State == links.ProcNotTold, p.State == links.ProcNotAsked, p.State == links.ProcRunning && p.Silent != "":
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
func stuck(b *links.Blocked) bool { return still(b) && len(b.Partners) > 0 && !waitsForOtherWorlds(b) }

// still reports whether a proc waits for others of whatever world, and nothing moves.
func still(b *links.Blocked) bool {
	return b != nil && !b.Computes && b.Time >= stuckAfter && len(b.Calls) > 0 && !slices.ContainsFunc(b.Partners, func(p links.Partner) bool {
		return p.What == links.WantsWindow || p.Why != "" && p.Why != whySyncAck
	})
}

// waitsForOtherWorlds reports whether a proc waits for procs of other worlds.
func waitsForOtherWorlds(b *links.Blocked) bool {
	return slices.ContainsFunc(b.Calls, waitsElsewhere) || slices.ContainsFunc(b.Partners, func(p links.Partner) bool { return p.OtherWorld })
}

// locksAreHeld reports whether all locks of windows that a proc waits for are held by others, as
// their own procs say: otherwise the question or the answer is under way. If the proc does not name
// all, one is enough for a proc in a single call, which needs them all.
func locksAreHeld(rank int, b *links.Blocked, procs map[int]*links.Blocked) bool {
	wanted, left := make(map[int]int), b.Left > 0
	for _, p := range b.Partners {
		if p.What == links.WantsLock {
			wanted[p.Peer]++
		}
	}
	if len(wanted) > 0 && left && len(b.Calls) != 1 {
		return false
	}
	for peer, n := range wanted {
		if of := procs[peer]; of == nil || countLocks(of, rank) < n {
			return false
		}
	}
	return true
}

// countLocks is how many locks a proc's memory has that another one waits for.
func countLocks(of *links.Blocked, waiter int) (n int) {
	for _, l := range of.Locks {
		if len(l.Holders) > 0 && slices.Contains(l.Waiters, waiter) {
			n++
		}
	}
	return n
}

// findHolders adds the holders of window locks to the partners of the procs that wait for them.
func findHolders(j *links.Job) {
	procs := make(map[int]*links.Blocked)
	for i := range j.Sites {
		for k := range j.Sites[i].Ranks {
			if p := &j.Sites[i].Ranks[k]; p.Blocked != nil {
				procs[p.Rank] = p.Blocked
			}
		}
	}
	for rank, b := range procs {
		for i := range b.Partners {
			p := &b.Partners[i]
			if of := procs[p.Peer]; p.What == links.WantsLock && !p.OtherWorld && of != nil {
				for _, l := range of.Locks {
					if slices.Contains(l.Waiters, rank) {
						p.Holders = append(p.Holders, l.Holders...)
					}
				}
				slices.Sort(p.Holders)
				p.Holders = slices.Compact(p.Holders)
			}
		}
	}
}

// waitsElsewhere reports whether a call waits for procs of other worlds, whoever its partners are.
func waitsElsewhere(c links.Call) bool {
	name := strings.ToLower(c.Name)
	words := []string{"accept", "connect", "spawn", "join", "session"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

func finalizes(c links.Call) bool { return strings.Contains(strings.ToLower(c.Name), "finalize") }

// whySyncAck is Partner.Why of a send that waits for its receive.
const whySyncAck = "SYNCACK"

// cycle returns procs each of which waits for the next one, and the last one for the first. A proc
// that waits for any proc counts as waiting for all.
func cycle(procs map[int]*links.Blocked) []int {
	return circle(slices.Sorted(maps.Keys(procs)), func(rank int) (list []int) {
		if procs[rank] == nil {
			return nil
		}
		for _, p := range procs[rank].Partners {
			switch {
			case p.Any:
			case p.What == links.WantsLock:
				list = append(list, p.Holders...)
			default:
				list = append(list, p.Peer)
			}
		}
		return list
	})
}
