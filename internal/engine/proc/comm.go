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
	state  CommState
	buffer *SendBuffer     // of buffered sends, guarded by the process's lock; nil: nobody has asked for it
	common *dynamic.Limits // of all members' jobs; nil: they are of this one
}

// CommState is the state of a communicator that the rooms above use.
type CommState struct {
	Local        *Comm         // the private one of an intercommunicator's own group
	Life         atomic.Uint32 // usable, not yet born or freed
	Name         ObjectName
	Hints        *Info // nil: none; guarded by the process's lock
	Colls        collectives
	Handler      HandlerSlot
	Attrs        comm.Attrs         // have a lock of their own
	Constructors uint32             // begun so far, guarded by the process's lock
	Pairings     map[Pairing]uint32 // partitioned operations that were made, guarded by the same
	Fixed        bool               // World or Self
}

// The stages of a communicator's life.
const (
	Usable uint32 = iota
	unborn        // Idup has not completed
	Freed
)

// communicators are those that exist from the start, and what others are made from.
type communicators struct {
	p           *Process
	World, Self *Comm
	Parent      atomic.Pointer[Comm] // nil: nobody has spawned this world
	Contexts    comm.Contexts
	groups      sync.Map // by a communicator's first context: *comm.Group; empty unless the dialect is the draft's
}

// NewComm makes a communicator of a group that this proc is a member of.
func (cs *communicators) NewComm(s comm.Spec) (*Comm, error) {
	c := &Comm{p: cs.p}
	if err := c.Become(s); err != nil {
		return nil, err
	}
	return c, nil
}

// Become gives c its groups and contexts.
func (c *Comm) Become(s comm.Spec) error {
	s.Self, s.Clients = comm.Proc(c.p.Job.Rank), c.p.Worlds.Clients()
	record, err := comm.New(s)
	if err != nil {
		return err
	}
	c.Comm, c.state.Local = record, nil
	if record.Inter() {
		c.state.Local = &Comm{p: c.p, Comm: record.Local(), common: c.p.Worlds.common(record.Local())}
	}
	c.common = c.p.Worlds.common(record)
	c.p.Worlds.Use(record, 1)
	c.p.Comms.enroll(record)
	return nil
}

// makeWorld makes the communicators that exist from the start.
func (cs *communicators) makeWorld() (err error) {
	world := comm.Spec{Context: comm.WorldContext, Group: cs.p.Members.world, Masters: cs.p.Members.masters}
	if cs.World, err = cs.NewComm(world); err != nil {
		return err
	}
	self := comm.Spec{Context: comm.SelfContext, Group: comm.NewGroup(comm.Proc(cs.p.Job.Rank), 1)}
	if cs.Self, err = cs.NewComm(self); err != nil {
		return err
	}
	cs.World.state.Fixed, cs.Self.state.Fixed = true, true
	cs.World.state.Name.Set("MPI_COMM_WORLD")
	cs.Self.state.Name.Set("MPI_COMM_SELF")
	cs.Contexts = comm.NewContexts(comm.Proc(cs.p.Job.Rank))
	if cs.p.Worlds.Description != nil {
		cs.Contexts.Qualify(cs.p.Worlds.Description.World, comm.PrivateBits)
	}
	return nil
}

func World() *Comm {
	TheLock.Lock()
	defer TheLock.Unlock()
	if The == nil {
		return nil
	}
	return The.Comms.World
}

func Self() *Comm {
	TheLock.Lock()
	defer TheLock.Unlock()
	if The == nil {
		return nil
	}
	return The.Comms.Self
}

// NoComm is the error for a nil communicator: MPI_COMM_NULL, or what World returns before
// Init.
func NoComm() error {
	if !Initialized() {
		return ErrNotInitialized
	}
	return fmt.Errorf("%w: nil, which is MPI_COMM_NULL", comm.ErrComm)
}

// PartnerOf finds the peer of a destination; none reports ProcNull.
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

// Wanted finds the envelope of a source, which may be a wildcard, and the peer if there is only
// one possible.
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

// Alive is an error once the job has ended or c was freed.
func (c *Comm) Alive() error {
	if Phase(c.p.State.Load()) == Ended {
		return ErrFinalized
	}
	switch c.state.Life.Load() {
	case Freed:
		return fmt.Errorf("%w: it has been freed", comm.ErrComm)
	case unborn:
		return fmt.Errorf("%w: the Idup that makes it has not completed, or has failed", comm.ErrComm)
	}
	return nil
}

// Usable is an error if c is nil, freed or not complete yet.
func (c *Comm) Usable() error {
	if c == nil {
		return NoComm()
	}
	return c.Alive()
}

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

// Ordinal returns the next number of a constructor; all members of c call those in the same
// order. The process is locked.
func (c *Comm) Ordinal() uint32 {
	c.state.Constructors++
	return c.state.Constructors
}

// Pairing identifies partitioned operations that match each other; they are counted by it.
type Pairing struct {
	Recv      bool
	Peer, Tag int
}

// collectives is a communicator's state of collective operations.
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

	Placing sync.Mutex
	Settled atomic.Bool // place says whether the communicator is on the board
	Place   *BoardPlace

	Teamed atomic.Bool // Team says whether the site's MPI takes part in collective operations
	Team   *NativeTeam
}

// Expected makes a communicator that cannot be used until Become gives it contexts of its own.
func (c *Comm) Expected(hints *Info) *Comm {
	d := &Comm{p: c.p, Comm: c.Comm, state: CommState{Local: c.state.Local, Hints: hints}}
	d.state.Life.Store(unborn)
	return d
}

// MaxObjectName is the most bytes of an object's name: MPI_MAX_OBJECT_NAME, less
// C's terminator.
const MaxObjectName = 127

// ObjectName is the name that a program has given an object. Other procs do not see it.
type ObjectName struct {
	mu   sync.Mutex
	name string
}

func (n *ObjectName) Get() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// Set keeps the first MaxObjectName bytes of the name.
func (n *ObjectName) Set(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.name = name[:min(len(name), MaxObjectName)]
}

func (c *Comm) Name() string {
	if c == nil {
		return "MPI_COMM_NULL"
	}
	return c.state.Name.Get()
}

func (c *Comm) SetName(name string) error {
	if err := c.Usable(); err != nil {
		return err
	}
	c.state.Name.Set(name)
	return nil
}

// The draft of March 1999 has one context ID for a communicator where we have
// two, and no ranks in packets; core/message tells how that is written. What is
// left to do here is to know which rank a proc has, and to agree on new contexts in
// the draft's numbers.

// enroll stores the group that the contexts of c are for.
func (cs *communicators) enroll(c *comm.Comm) {
	if cs.p.Job.Dialect != wire.Draft {
		return
	}
	cs.groups.Store(c.Context(), c.Partners())
	if c.Inter() {
		cs.enroll(c.Local())
	}
}

// Strike is the inverse of enroll.
func (cs *communicators) Strike(c *comm.Comm) {
	if cs.p.Job.Dialect != wire.Draft {
		return
	}
	cs.groups.Delete(c.Context())
	if c.Inter() {
		cs.Strike(c.Local())
	}
}

// rankIn is the rank of a peer in the group of a context. If the group is not known any more,
// it is the rank in the world.
func (cs *communicators) rankIn(context wire.ContextID, peer message.Peer) wire.CommRank {
	if g, ok := cs.groups.Load(context &^ 1); ok {
		if rank, ok := g.(*comm.Group).Rank(comm.Proc(peer)); ok {
			return wire.CommRank(rank)
		}
	}
	return wire.CommRank(peer)
}

// DraftAgreement makes agree work on the draft's context IDs, of which a communicator has one
// where ours has a pair.
func DraftAgreement(agree func(wire.ContextID) (wire.ContextID, error)) func(wire.ContextID) (wire.ContextID, error) {
	return func(mine wire.ContextID) (wire.ContextID, error) {
		agreed, err := agree(mine >> 1)
		if agreed >= comm.ContextLimit>>1 {
			return math.MaxUint64, err // there are none left
		}
		return agreed<<1 | 1, err
	}
}

// State is what the rooms above keep in the communicator.
func (c *Comm) State() *CommState { return &c.state }

// Process is the process that the communicator belongs to.
func (c *Comm) Process() *Process { return c.p }
