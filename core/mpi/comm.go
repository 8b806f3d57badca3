package mpi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// Special ranks and tags, with the values of the MPI ABI.
const (
	AnySource = -1 // receive from any rank
	AnyTag    = -2 // receive any tag
	ProcNull  = -3 // a partner that does not exist: sends vanish, receives complete empty
	Undefined = -32766
)

// Comm is a communicator: a group of procs and a space of messages of its own.
// It may be used by several goroutines.
type Comm struct {
	p *process
	*comm.Comm
	local   *Comm // the private one of an intercommunicator's own group
	life    atomic.Uint32
	name    objectName
	hints   *Info // nil: none
	colls   collectives
	handler handlerSlot
	attrs   comm.Attrs

	constructors uint32             // begun so far, guarded by the process's lock
	pairings     map[pairing]uint32 // partitioned operations that were made, guarded by the same
	fixed        bool               // World or Self
	buffer       *SendBuffer        // of buffered sends, guarded by the same; nil: nobody has asked for it
	common       *dynamic.Limits    // of all members' jobs; nil: they are of this one
}

// The stages of a communicator's life.
const (
	usable uint32 = iota
	unborn        // Idup has not completed
	freed
)

// newComm makes a communicator of a group that this proc is a member of.
func (p *process) newComm(s comm.Spec) (*Comm, error) {
	c := &Comm{p: p}
	if err := c.become(s); err != nil {
		return nil, err
	}
	return c, nil
}

// become gives c its groups and contexts.
func (c *Comm) become(s comm.Spec) error {
	s.Self, s.Clients = comm.Proc(c.p.job.Rank), c.p.clients()
	record, err := comm.New(s)
	if err != nil {
		return err
	}
	c.Comm, c.local = record, nil
	if record.Inter() {
		c.local = &Comm{p: c.p, Comm: record.Local(), common: c.p.common(record.Local())}
	}
	c.common = c.p.common(record)
	c.p.use(record, 1)
	c.p.enroll(record)
	return nil
}

// makeWorld makes the communicators that exist from the start.
func (p *process) makeWorld() (err error) {
	world := comm.Spec{Context: comm.WorldContext, Group: p.roster.world, Masters: p.roster.masters}
	if p.world, err = p.newComm(world); err != nil {
		return err
	}
	self := comm.Spec{Context: comm.SelfContext, Group: comm.NewGroup(comm.Proc(p.job.Rank), 1)}
	if p.self, err = p.newComm(self); err != nil {
		return err
	}
	p.world.fixed, p.self.fixed = true, true
	p.world.name.set("MPI_COMM_WORLD")
	p.self.name.set("MPI_COMM_SELF")
	p.contexts = comm.NewContexts(comm.Proc(p.job.Rank))
	if p.description != nil {
		p.contexts.Qualify(p.description.World, comm.PrivateBits)
	}
	return nil
}

// World gives the communicator of all procs of all sites, or nil before Init.
// Ranks are ordered by site, then by host, then by proc.
func World() *Comm {
	theLock.Lock()
	defer theLock.Unlock()
	if the == nil {
		return nil
	}
	return the.world
}

// Self gives the communicator of this proc alone, or nil before Init.
func Self() *Comm {
	theLock.Lock()
	defer theLock.Unlock()
	if the == nil {
		return nil
	}
	return the.self
}

// noComm says what a nil communicator is: MPI_COMM_NULL, unless it comes from
// World before Init.
func noComm() error {
	if !Initialized() {
		return ErrNotInitialized
	}
	return fmt.Errorf("%w: nil, which is MPI_COMM_NULL", comm.ErrComm)
}

// partner resolves a destination: the peer, or none for ProcNull.
func (c *Comm) partner(rank, tag int) (peer message.Peer, none bool, err error) {
	switch {
	case c == nil:
		return 0, false, noComm()
	case rank == ProcNull:
		return message.NoPeer, true, nil
	case tag < 0 || tag > c.tagUB():
		return 0, false, fmt.Errorf("%w: %d, the job has 0 to %d", ErrTag, tag, c.tagUB())
	}
	proc, ok := c.Partner(rank)
	if !ok {
		return 0, false, fmt.Errorf("%w: %d, the communicator has 0 to %d", comm.ErrRank, rank, c.Partners().Size()-1)
	}
	return message.Peer(proc), false, c.alive()
}

// wanted resolves a source, which may be a wildcard: its envelope and the only
// possible peer, if there is only one.
func (c *Comm) wanted(rank, tag int) (env message.Envelope, from message.Peer, none bool, err error) {
	env = message.Envelope{Rank: wire.CommRank(rank), Tag: wire.Tag(tag)}
	from = message.NoPeer
	if tag == AnyTag && c != nil {
		env.Tag, tag = message.AnyTag, 0
	}
	if rank == AnySource {
		env.Rank = message.AnySource
		_, _, err = c.partner(0, tag)
	} else {
		from, none, err = c.partner(rank, tag)
	}
	if err == nil {
		env.Context = c.Context()
	}
	return env, from, none, err
}

// alive refuses to begin anything once the job is over, or c is.
func (c *Comm) alive() error {
	if phase(c.p.state.Load()) == finalized {
		return ErrFinalized
	}
	switch c.life.Load() {
	case freed:
		return fmt.Errorf("%w: it has been freed", comm.ErrComm)
	case unborn:
		return fmt.Errorf("%w: the Idup that makes it has not completed, or has failed", comm.ErrComm)
	}
	return nil
}

// check refuses communicators that cannot be used.
func (c *Comm) check() error {
	if c == nil {
		return noComm()
	}
	return c.alive()
}

// Check tells whether c can be used: it is ErrComm for nil and for what has been
// freed. The functions that give no error say of nil that it has size 0 and rank
// Undefined.
func (c *Comm) Check() error { return c.failed("Comm.Check", c.check()) }

// Size is the number of members; of an intercommunicator those of the local group.
func (c *Comm) Size() int {
	if c == nil {
		return 0
	}
	return c.Comm.Size()
}

// Rank is the calling proc's rank; in an intercommunicator that in the local group.
func (c *Comm) Rank() int {
	if c == nil {
		return Undefined
	}
	return c.Comm.Rank()
}

// ordinal numbers the constructors that all members of c call in the same order.
// The process is locked.
func (c *Comm) ordinal() uint32 {
	c.constructors++
	return c.constructors
}

// pairing is what partitioned operations are counted by.
type pairing struct {
	recv      bool
	peer, tag int
}

// collectives are a communicator's means of collective operations.
type collectives struct {
	once    sync.Once
	planner *coll.Planner
	ours    bool // all members run this library and number the operations
	mu      sync.Mutex
	free    []backgroundOp // of earlier operations, to be used again
	number  atomic.Uint64  // how many operations have been begun
	// turns are the operations under way where they must take turns: messages to
	// members of another library do not tell which of them they belong to.
	turns []backgroundOp

	seating sync.Mutex
	settled atomic.Bool // place says whether the communicator is on the board
	place   *boardPlace
}
