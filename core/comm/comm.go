package comm

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/openimpi/impi/core/wire"
)

// ErrComm is wrapped by the errors for a communicator that is missing, freed or of the
// wrong kind.
var ErrComm = errors.New("invalid communicator")

// Spec describes a communicator.
type Spec struct {
	Context wire.ContextID // context ID of point-to-point messages; collectives use the next one
	Group   *Group
	Self    Proc     // the calling process, a member of Group
	Clients *Clients // contains all members
	// Masters are the masters of Group, or nil if the caller has not computed them.
	Masters  *Masters
	Topology Topology // nil: none
	// Remote is the remote group of an intercommunicator between Group and Remote, which have no
	// member in common; nil makes an intracommunicator. The two context IDs after those of an
	// intracommunicator then belong to the private communicator of Group's members.
	Remote *Group
}

// Comm is a communicator from the point of view of one process (MPI-4.1, 7.2.3 and 7.6). It is
// immutable and may be used by any goroutine.
//
// Of an intercommunicator, Group, Size, Rank, Proc and Masters are about the local group; sources
// and destinations of messages are ranks in Partners.
type Comm struct {
	spec    Spec
	rank    int
	local   *Comm                   // set for an intercommunicator
	masters atomic.Pointer[Masters] // made when first asked for
}

// New makes a communicator. The error is ErrGroup if the calling process is not a member.
func New(s Spec) (*Comm, error) {
	if s.Group == nil || s.Clients == nil {
		return nil, fmt.Errorf("comm: %w: context %d has no group", ErrGroup, s.Context)
	}
	rank, ok := s.Group.Rank(s.Self)
	if !ok {
		return nil, fmt.Errorf("comm: %w: proc %d is not a member of context %d", ErrGroup, s.Self, s.Context)
	}
	c := &Comm{spec: s, rank: rank}
	c.masters.Store(s.Masters)
	if s.Remote == nil {
		return c, nil
	}
	return c, c.join()
}

// Spec returns the Spec of c, with its Masters. With another context it describes a duplicate.
func (c *Comm) Spec() Spec {
	s := c.spec
	s.Masters = c.Masters()
	return s
}

// Context returns the context ID of point-to-point messages.
func (c *Comm) Context() wire.ContextID { return c.spec.Context }

// CollectiveContext returns the context ID of collective operations. IMPI ch.4, Context IDs: the
// communicator's own plus one.
func (c *Comm) CollectiveContext() wire.ContextID { return c.spec.Context + 1 }

// Group returns the members by rank.
func (c *Comm) Group() *Group { return c.spec.Group }

// Size returns the number of members.
func (c *Comm) Size() int { return c.spec.Group.size }

// Rank returns the calling process's rank.
func (c *Comm) Rank() int { return c.rank }

// Self returns the calling process.
func (c *Comm) Self() Proc { return c.spec.Self }

// Proc returns the member with that rank; ok is false if there is no such rank.
func (c *Comm) Proc(rank int) (p Proc, ok bool) { return c.spec.Group.At(rank) }

// ClientOf returns the client of p, which must be a member.
func (c *Comm) ClientOf(p Proc) wire.ClientRank { return c.spec.Clients.Of(p) }

// Clients returns the table that contains all members.
func (c *Comm) Clients() *Clients { return c.spec.Clients }

// Topology returns the virtual topology that the communicator was made with, or nil (MPI-4.1, 8.1).
func (c *Comm) Topology() Topology { return c.spec.Topology }

// Cart returns the Cartesian topology, or nil.
func (c *Comm) Cart() *Cart {
	t, _ := c.spec.Topology.(*Cart)
	return t
}

// Masters returns the masters of the clients that the communicator spans. They are computed at the
// first call, unless the Spec contained them.
func (c *Comm) Masters() *Masters {
	if m := c.masters.Load(); m != nil {
		return m
	}
	c.masters.CompareAndSwap(nil, NewMasters(c.spec.Group, c.spec.Clients)) // all callers compute the same
	return c.masters.Load()
}
