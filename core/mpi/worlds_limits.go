package mpi

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
)

// common is what all jobs that members of c are of have in common; nil where that
// is this job only.
func (p *process) common(c *comm.Comm) *dynamic.Limits {
	met := p.worldsOf(c.Group(), c.Remote())
	if len(met) == 0 {
		return nil
	}
	l := p.description.Limits
	for _, w := range met {
		l = l.Least(w.Limits)
	}
	return &l
}

// wide tells whether some members of c are of other jobs.
func (c *Comm) wide() bool { return c.common != nil }

// tagUB is the largest tag.
func (c *Comm) tagUB() int {
	if c.common != nil {
		return int(c.common.TagUB)
	}
	return int(c.p.job.TagUB)
}

// collectiveLimits are what collectives depend on: all members have the same.
func (c *Comm) collectiveLimits() (xsize, maxLinear int) {
	if c.common != nil {
		return int(c.common.XSize), int(c.common.MaxLinear)
	}
	return int(c.p.job.XSize), int(c.p.job.MaxLinear)
}

// checks tells whether the members compare what they call.
func (c *Comm) checks() bool { return c.p.check && (c.common == nil || c.common.Check) }

// before tells whether a proc comes first where two groups are of equal right. All
// processes see it alike, whatever they number others.
//
// IMPI ch.4, Intercomm_merge: by the ranks in the world; by the world, if they are
// of several.
func (p *process) before(a, b comm.Proc) bool {
	if !p.stranger(message.Peer(a)) && !p.stranger(message.Peer(b)) {
		return a < b
	}
	return p.member(a).Compare(p.member(b)) < 0
}
