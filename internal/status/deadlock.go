package status

import (
	"slices"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// stuckAfter is how long a proc must have waited to be part of a deadlock.
const stuckAfter = time.Second

// Deadlock says that every proc of a job waits for another one, so that none of them goes on by itself.
// It is probable, not certain: a proc may wait for something that is not MPI, in another thread.
type Deadlock struct {
	For   time.Duration `json:"for_ns"`          // the shortest of the waits
	Cycle []int         `json:"cycle,omitempty"` // ranks, each waits for the next one, the last for the first; empty: there is none
}

// findDeadlock returns the deadlock of a job, or nil: also if a proc was not asked.
func findDeadlock(j *links.Job) *Deadlock {
	procs := make(map[int]*links.Blocked)
	size := 0
	for i := range j.Sites {
		s := &j.Sites[i]
		size += s.Procs
		for k := range s.Ranks {
			p := &s.Ranks[k]
			if p.State != links.ProcRunning {
				size--
				continue
			}
			if p.Rank < 0 || !stuck(p.Blocked) {
				return nil
			}
			procs[p.Rank] = p.Blocked
		}
	}
	if len(procs) == 0 || len(procs) != size {
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

// stuck reports whether a proc waits for others, and nothing moves.
func stuck(b *links.Blocked) bool {
	return b != nil && b.Time >= stuckAfter && len(b.Partners) > 0 &&
		!slices.ContainsFunc(b.Partners, func(p links.Partner) bool { return p.Why != "" && p.Why != whySyncAck })
}

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
			next := []int{p.Peer}
			if p.Any {
				next = ranks
			}
			for _, n := range next {
				if n == rank && p.Any {
					continue
				}
				if c := visit(n); c != nil {
					return c
				}
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
