package proc

import (
	"fmt"
	"math"
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
	p *Process
	*comm.Comm
	local   *Comm // the private one of an intercommunicator's own group
	life    atomic.Uint32
	name    ObjectName
	hints   *Info // nil: none
	colls   collectives
	handler HandlerSlot
	attrs   comm.Attrs

	constructors uint32             // begun so far, guarded by the process's lock
	pairings     map[Pairing]uint32 // partitioned operations that were made, guarded by the same
	fixed        bool               // World or Self
	buffer       *SendBuffer        // of buffered sends, guarded by the same; nil: nobody has asked for it
	common       *dynamic.Limits    // of all members' jobs; nil: they are of this one
}

// The stages of a communicator's life.
const (
	Usable uint32 = iota
	unborn        // Idup has not completed
	Freed
)

// NewComm makes a communicator of a group that this proc is a member of.
func (p *Process) NewComm(s comm.Spec) (*Comm, error) {
	c := &Comm{p: p}
	if err := c.Become(s); err != nil {
		return nil, err
	}
	return c, nil
}

// Become gives c its groups and contexts.
func (c *Comm) Become(s comm.Spec) error {
	s.Self, s.Clients = comm.Proc(c.p.Job.Rank), c.p.Clients()
	record, err := comm.New(s)
	if err != nil {
		return err
	}
	c.Comm, c.local = record, nil
	if record.Inter() {
		c.local = &Comm{p: c.p, Comm: record.Local(), common: c.p.common(record.Local())}
	}
	c.common = c.p.common(record)
	c.p.Use(record, 1)
	c.p.enroll(record)
	return nil
}

// makeWorld makes the communicators that exist from the start.
func (p *Process) makeWorld() (err error) {
	world := comm.Spec{Context: comm.WorldContext, Group: p.Roster.world, Masters: p.Roster.masters}
	if p.World, err = p.NewComm(world); err != nil {
		return err
	}
	self := comm.Spec{Context: comm.SelfContext, Group: comm.NewGroup(comm.Proc(p.Job.Rank), 1)}
	if p.Self, err = p.NewComm(self); err != nil {
		return err
	}
	p.World.fixed, p.Self.fixed = true, true
	p.World.name.Set("MPI_COMM_WORLD")
	p.Self.name.Set("MPI_COMM_SELF")
	p.Contexts = comm.NewContexts(comm.Proc(p.Job.Rank))
	if p.Description != nil {
		p.Contexts.Qualify(p.Description.World, comm.PrivateBits)
	}
	return nil
}

func World() *Comm {
	TheLock.Lock()
	defer TheLock.Unlock()
	if The == nil {
		return nil
	}
	return The.World
}

func Self() *Comm {
	TheLock.Lock()
	defer TheLock.Unlock()
	if The == nil {
		return nil
	}
	return The.Self
}

// NoComm says what a nil communicator is: MPI_COMM_NULL, unless it comes from
// World before Init.
func NoComm() error {
	if !Initialized() {
		return ErrNotInitialized
	}
	return fmt.Errorf("%w: nil, which is MPI_COMM_NULL", comm.ErrComm)
}

// PartnerOf resolves a destination: the peer, or none for ProcNull.
func (c *Comm) PartnerOf(rank, tag int) (peer message.Peer, none bool, err error) {
	switch {
	case c == nil:
		return 0, false, NoComm()
	case rank == ProcNull:
		return message.NoPeer, true, nil
	case tag < 0 || tag > c.TagUB():
		return 0, false, fmt.Errorf("%w: %d, the job has 0 to %d", ErrTag, tag, c.TagUB())
	}
	proc, ok := c.Partner(rank)
	if !ok {
		return 0, false, fmt.Errorf("%w: %d, the communicator has 0 to %d", comm.ErrRank, rank, c.Partners().Size()-1)
	}
	return message.Peer(proc), false, c.Alive()
}

// Wanted resolves a source, which may be a wildcard: its envelope and the only
// possible peer, if there is only one.
func (c *Comm) Wanted(rank, tag int) (env message.Envelope, from message.Peer, none bool, err error) {
	env = message.Envelope{Rank: wire.CommRank(rank), Tag: wire.Tag(tag)}
	from = message.NoPeer
	if tag == AnyTag && c != nil {
		env.Tag, tag = message.AnyTag, 0
	}
	if rank == AnySource {
		env.Rank = message.AnySource
		_, _, err = c.PartnerOf(0, tag)
	} else {
		from, none, err = c.PartnerOf(rank, tag)
	}
	if err == nil {
		env.Context = c.Context()
	}
	return env, from, none, err
}

// Alive refuses to begin anything once the job is over, or c is.
func (c *Comm) Alive() error {
	if Phase(c.p.State.Load()) == Ended {
		return ErrFinalized
	}
	switch c.life.Load() {
	case Freed:
		return fmt.Errorf("%w: it has been freed", comm.ErrComm)
	case unborn:
		return fmt.Errorf("%w: the Idup that makes it has not completed, or has failed", comm.ErrComm)
	}
	return nil
}

// Usable refuses communicators that cannot be used.
func (c *Comm) Usable() error {
	if c == nil {
		return NoComm()
	}
	return c.Alive()
}

func (c *Comm) Check() error { return c.Failed("Comm.Check", c.Usable()) }

func (c *Comm) Size() int {
	if c == nil {
		return 0
	}
	return c.Comm.Size()
}

func (c *Comm) Rank() int {
	if c == nil {
		return Undefined
	}
	return c.Comm.Rank()
}

// Ordinal numbers the constructors that all members of c call in the same order.
// The process is locked.
func (c *Comm) Ordinal() uint32 {
	c.constructors++
	return c.constructors
}

// Pairing is what partitioned operations are counted by.
type Pairing struct {
	Recv      bool
	Peer, Tag int
}

// collectives are a communicator's means of collective operations.
type collectives struct {
	Once    sync.Once
	Planner *coll.Planner
	Ours    bool // all members run this library and number the operations
	Mu      sync.Mutex
	Free    []BackgroundOp // of earlier operations, to be used again
	Number  atomic.Uint64  // how many operations have been begun
	// Turns are the operations under way where they must take turns: messages to
	// members of another library do not tell which of them they belong to.
	Turns []BackgroundOp

	Seating sync.Mutex
	Settled atomic.Bool // place says whether the communicator is on the board
	Place   *BoardPlace
}

// Expected is a communicator that is c's double until become makes it one of its own.
func (c *Comm) Expected(hints *Info) *Comm {
	d := &Comm{p: c.p, Comm: c.Comm, local: c.local, hints: hints}
	d.life.Store(unborn)
	return d
}

// MaxObjectName is the most bytes of an object's name: MPI_MAX_OBJECT_NAME, less
// C's terminator.
const MaxObjectName = 127

// ObjectName is the name that a program has given an object. It is not for other
// procs to see.
type ObjectName struct {
	mu   sync.Mutex
	name string
}

func (n *ObjectName) Get() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// Set keeps as much of the name as objects have.
func (n *ObjectName) Set(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.name = name[:min(len(name), MaxObjectName)]
}

func (c *Comm) Name() string {
	if c == nil {
		return "MPI_COMM_NULL"
	}
	return c.name.Get()
}

func (c *Comm) SetName(name string) error {
	if err := c.Usable(); err != nil {
		return c.Failed("SetName", err)
	}
	c.name.Set(name)
	return nil
}

// The draft of March 1999 has one context ID for a communicator where we have
// two, and no ranks in packets; core/message tells how that is written. What is
// left to do here is to know which rank a proc has, and to agree on new contexts in
// the draft's numbers.

// enroll notes whom the contexts of c are for.
func (p *Process) enroll(c *comm.Comm) {
	if p.Job.Dialect != wire.Draft {
		return
	}
	p.groups.Store(c.Context(), c.Partners())
	if c.Inter() {
		p.enroll(c.Local())
	}
}

// Strike forgets c.
func (p *Process) Strike(c *comm.Comm) {
	if p.Job.Dialect != wire.Draft {
		return
	}
	p.groups.Delete(c.Context())
	if c.Inter() {
		p.Strike(c.Local())
	}
}

// rankIn gives the rank of a peer among those whom a context is for. Where nobody
// knows it any more, it is that in the world.
func (p *Process) rankIn(context wire.ContextID, peer message.Peer) wire.CommRank {
	if g, ok := p.groups.Load(context &^ 1); ok {
		if rank, ok := g.(*comm.Group).Rank(comm.Proc(peer)); ok {
			return wire.CommRank(rank)
		}
	}
	return wire.CommRank(peer)
}

// DraftAgreement has agree work on context IDs as the draft has them: one for each
// communicator, where the largest of ours belongs to the second of a pair.
func DraftAgreement(agree func(wire.ContextID) (wire.ContextID, error)) func(wire.ContextID) (wire.ContextID, error) {
	return func(mine wire.ContextID) (wire.ContextID, error) {
		agreed, err := agree(mine >> 1)
		if agreed >= comm.ContextLimit>>1 {
			return math.MaxUint64, err // there are none left
		}
		return agreed<<1 | 1, err
	}
}
