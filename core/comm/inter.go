package comm

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// The number of consecutive context IDs of a communicator: one for point-to-point messages and one
// for collectives, and for an intercommunicator two more for its private communicator. Its groups
// are disjoint, so both can use the same IDs for their private communicators.
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
	if p, overlap := s.Group.CommonMember(s.Remote); overlap {
		return fmt.Errorf("comm: %w: proc %d is in both groups of context %d", ErrComm, p, s.Context)
	}
	c.local, err = New(Spec{
		Context: s.Context + IntraContexts, Group: s.Group, Self: s.Self, Clients: s.Clients, Masters: s.Masters,
	})
	return err
}

// Inter reports whether c is an intercommunicator (MPI-4.1, 7.6.1).
func (c *Comm) Inter() bool { return c.local != nil }

// Local returns the private intracommunicator of an intercommunicator's local group, in
// which its collectives and constructors do their local part. For an intracommunicator it
// returns c itself.
func (c *Comm) Local() *Comm {
	if c.local == nil {
		return c
	}
	return c.local
}

// Remote returns the group of the other side, or nil if c is an intracommunicator.
func (c *Comm) Remote() *Group { return c.spec.Remote }

// Partners returns the group whose ranks are the sources and destinations of messages: the
// remote group of an intercommunicator, otherwise the group itself.
func (c *Comm) Partners() *Group {
	if c.spec.Remote != nil {
		return c.spec.Remote
	}
	return c.spec.Group
}

// Partner returns the process with that rank in the group of Partners; ok is false if there is no
// such rank.
func (c *Comm) Partner(rank int) (p Proc, ok bool) { return c.Partners().At(rank) }

// Compare returns the relation of c and d: the same object (Identical), the same groups
// (Congruent), the same members in another order (Similar), or Unequal. An intra- and an
// intercommunicator are Unequal. For two intercommunicators the local and the remote groups are
// compared, and the weaker result counts (MPI-4.1, 7.6.1).
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

// PartnerClient returns the client of a process of either group.
func (c *Comm) PartnerClient(rank int) (client wire.ClientRank, ok bool) {
	p, ok := c.Partner(rank)
	if !ok {
		return 0, false
	}
	return c.spec.Clients.Of(p), true
}
