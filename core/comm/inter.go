package comm

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// How many context IDs a communicator takes, one after the other: for
// point-to-point messages and for collectives, and an intercommunicator two
// more for its private communicator. The groups are disjoint, so that both
// sides' private ones can have the same.
const (
	IntraContexts = 2
	InterContexts = 4
)

// join checks an intercommunicator and makes its private communicator.
func (c *Comm) join() (err error) {
	s := &c.spec
	if s.Remote.size == 0 {
		return fmt.Errorf("comm: %w: the remote group of context %d is empty", ErrGroup, s.Context)
	}
	if p, overlap := s.Group.Meets(s.Remote); overlap {
		return fmt.Errorf("comm: %w: proc %d is in both groups of context %d", ErrComm, p, s.Context)
	}
	c.local, err = New(Spec{
		Context: s.Context + IntraContexts, Group: s.Group, Self: s.Self, Clients: s.Clients, Masters: s.Masters,
	})
	return err
}

// Inter reports whether c is an intercommunicator.
func (c *Comm) Inter() bool { return c.local != nil }

// Local is the private intracommunicator of the local group, in which an
// intercommunicator's collectives and constructors do their part on this side.
// An intracommunicator gives itself.
func (c *Comm) Local() *Comm {
	if c.local == nil {
		return c
	}
	return c.local
}

// Remote is the group of the other side; nil if c is an intracommunicator.
func (c *Comm) Remote() *Group { return c.spec.Remote }

// Partners is the group whose ranks are the sources and destinations of
// messages: the remote one of an intercommunicator, else the group itself.
func (c *Comm) Partners() *Group {
	if c.spec.Remote != nil {
		return c.spec.Remote
	}
	return c.spec.Group
}

// Partner returns the process of a source's or destination's rank; ok is false if
// there is no such rank.
func (c *Comm) Partner(rank int) (p Proc, ok bool) { return c.Partners().At(rank) }

// PartnerClient returns the client of a process of either group.
func (c *Comm) PartnerClient(rank int) (client wire.ClientRank, ok bool) {
	p, ok := c.Partner(rank)
	if !ok {
		return 0, false
	}
	return c.spec.Clients.Of(p), true
}

// Compare says how c and d relate: the same object (Identical), the same groups
// (Congruent), the same members in another order (Similar), or Unequal. An
// intra- and an intercommunicator are Unequal; two intercommunicators are what
// the less alike of their groups are, local with local and remote with remote.
func (c *Comm) Compare(d *Comm) Comparison {
	switch {
	case c == d:
		return Identical
	case c.Inter() != d.Inter():
		return Unequal
	}
	result := c.spec.Group.Compare(d.spec.Group)
	if c.Inter() {
		result = max(result, c.spec.Remote.Compare(d.spec.Remote))
	}
	return max(result, Congruent)
}
