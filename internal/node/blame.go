package node

import "time"

// weight ranks what is noticed when a job breaks: one death shows in many
// places, and the heavier report explains the lighter ones.
type weight int

const (
	// consequence: a proc ended after it had lost its link to another one, which may have
	// died, or whose machine is lost.
	consequence weight = iota
	// lost: a connection of the node's ended. Whoever is behind it knows why.
	lost
	// died: a proc exited, was killed or called Abort, and nothing had happened to it
	// before. The first one is to blame, however it ended.
	died
	// decided: there is nothing to find out. The operator, another site or a time limit
	// ended the job, or the node cannot go on.
	decided
)

// settle is how long a report waits for one that explains it. A report on another site
// takes its own wait and the way through the server. All procs that ended wait equally
// long, so that of two sites the one whose proc ended first speaks first.
func settle(w weight) time.Duration {
	switch w {
	case consequence, lost:
		return 2 * time.Second
	case died:
		return 100 * time.Millisecond
	default: // decided
		return 0
	}
}

// explains tells whether f is to be told instead of g, which was noticed sooner.
func (f *Failure) explains(g *Failure) bool {
	switch {
	case f.weight != g.weight:
		return f.weight > g.weight
	case f.at.IsZero() || g.at.IsZero():
		return false
	}
	return f.at.Before(g.at) // the kernel's order, not that in which we looked
}
