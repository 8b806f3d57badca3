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

// Special ranks and tags (MPI-4.1, 3.2.4 and 3.11), with the values of the MPI ABI.
const (
	AnySource = -1 // receive from any rank
	AnyTag    = -2 // receive any tag
	ProcNull  = -3 // a partner that does not exist: sends to it do nothing, receives complete with nothing
	Undefined = -32766
)

// Comm is a communicator (MPI-4.1, 7.2): a group of procs, and context IDs that separate its
// messages from all others. It may be used by several goroutines.
type Comm struct {
	p *Process
	*comm.Comm
	state  CommState
	buffer *SendBuffer     // of buffered sends, guarded by the process's lock; nil: never requested
	common *dynamic.Limits // limits that hold in all jobs of the members; nil: all are of this job
}

// CommState is the state that higher packages of the engine keep in a communicator.
type CommState struct {
	Local        *Comm         // of an intercommunicator: the private communicator of the own group
	Life         atomic.Uint32 // usable, not yet born or freed
	Name         ObjectName
	Hints        *Info // nil: none; guarded by the process's lock
	Colls        collectives
	Handler      HandlerSlot
	Attrs        comm.Attrs                  // has a lock of its own
	Constructors uint32                      // number of constructors begun; guarded by the process's lock
	Pairings     map[PartitionedMatch]uint32 // number of partitioned operations made; guarded by the process's lock
	Fixed        bool                        // World or Self
	Revoked      atomic.Bool
	Acknowledged int // number of lost procs, in their order, that the program has acknowledged; guarded by the process's lock
}

// The stages of a communicator's life.
const (
	Usable uint32 = iota
	unborn        // Idup has not completed, so it has no context IDs yet
	Freed
)

// communicators are the communicators that exist from the start, and the groups of contexts.
type communicators struct {
	p           *Process
	World, Self *Comm
	Parent      atomic.Pointer[Comm] // nil: this world was not spawned
	Contexts    comm.Contexts
	windows     map[wire.ContextID]Window // by the contexts in which they receive messages; guarded by the process's lock
	names       sync.Map                  // by a communicator's first context ID: its name in the program
	groups      sync.Map                  // by a communicator's first context ID: *comm.Group; used with the draft dialect only
}

// NewComm makes a communicator of a group that this proc is a member of.
func (cs *communicators) NewComm(s comm.Spec) (*Comm, error) {
	c := &Comm{p: cs.p}
	if err := c.Activate(s); err != nil {
		return nil, err
	}
	return c, nil
}

// Activate sets the groups and context IDs of c.
func (c *Comm) Activate(s comm.Spec) error {
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
	c.p.Survival.enroll(c)
	return nil
}

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
		cs.Contexts.SetWorld(cs.p.Worlds.Description.World, comm.PrivateBits)
	}
	return nil
}

func World() *Comm {
	ProcessMu.Lock()
	defer ProcessMu.Unlock()
	if ThisProcess == nil {
		return nil
	}
	return ThisProcess.Comms.World
}

func Self() *Comm {
	ProcessMu.Lock()
	defer ProcessMu.Unlock()
	if ThisProcess == nil {
		return nil
	}
	return ThisProcess.Comms.Self
}

// NoComm returns the error for a nil communicator: MPI_COMM_NULL, or the result of World before
// Init.
func NoComm() error {
	if !Initialized() {
		return ErrNotInitialized
	}
	return fmt.Errorf("%w: nil, which is MPI_COMM_NULL", comm.ErrComm)
}

// PartnerOf returns the peer of a destination; none reports whether the destination is ProcNull.
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

// RecvEnvelope returns the envelope of a receive from a source, which may be a wildcard, and the
// peer if only one is possible; none reports whether the source is ProcNull.
func (c *Comm) RecvEnvelope(rank, tag int) (env message.Envelope, from message.Peer, none bool, err error) {
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

// Alive returns an error once the job has ended or c was freed.
func (c *Comm) Alive() error {
	if LifeState(c.p.State.Load()) == Ended {
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

// Usable returns an error if c is nil, freed or not complete yet.
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

// Ordinal returns the number of the next constructor, which is the same at all members since all
// call constructors in the same order. The process is locked.
func (c *Comm) Ordinal() uint32 {
	c.state.Constructors++
	return c.state.Constructors
}

// PartitionedMatch contains the common properties of partitioned operations that match. Operations
// with the same PartitionedMatch are counted, and match in that order.
type PartitionedMatch struct {
	Recv      bool
	Peer, Tag int
}

type collectives struct {
	Once    sync.Once
	Planner *coll.Planner
	AllImpi bool // all members run this library and number their operations alike
	Mu      sync.Mutex
	Free    []BackgroundOp // objects of earlier operations, for reuse
	number  atomic.Uint64  // number of operations begun; in OnBoard if there is one
	// Ordered are the operations that wait for their turn, if some members use another library: that
	// library does not number operations, so only one may be under way.
	Ordered []BackgroundOp

	Joining sync.Mutex
	Settled atomic.Bool // BoardMember was called, so OnBoard is final
	OnBoard *BoardMember

	NativeSettled atomic.Bool // Team reports whether the site's MPI takes part in collective operations
	NativeComm    *NativeComm
}

// Next returns the number of the operation that begins now.
func (cs *collectives) Next() uint64 {
	if cs.OnBoard != nil {
		return cs.OnBoard.Member.Number.Add(1) - 1
	}
	return cs.number.Add(1) - 1
}

// NewPending returns a communicator like c that cannot be used until Activate gives it context IDs.
func (c *Comm) NewPending(hints *Info) *Comm {
	d := &Comm{p: c.p, Comm: c.Comm, state: CommState{Local: c.state.Local, Hints: hints}}
	d.state.Life.Store(unborn)
	return d
}

// MaxObjectName is the maximum length of an object's name in bytes: MPI_MAX_OBJECT_NAME, less C's
// terminator.
const MaxObjectName = 127

// ObjectName is the name that a program has given an object. Other procs do not see it.
type ObjectName struct {
	mu   sync.Mutex
	name string
}

// Get returns the name, or "" if the program has given none.
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
	c.p.Comms.names.Store(c.Context(), c.state.Name.Get())
	return nil
}

// In the draft of March 1999 a communicator has one context ID where ours has two, and packets do
// not have the sender's rank; core/message converts the packets. The functions below find the rank
// of a proc in a context's group, and agree on new context IDs in the draft's numbers.

func (cs *communicators) enroll(c *comm.Comm) {
	if cs.p.Job.Dialect != wire.Draft {
		return
	}
	cs.groups.Store(c.Context(), c.Partners())
	if c.Inter() {
		cs.enroll(c.Local())
	}
}

// Unregister undoes enroll, and removes the name.
func (cs *communicators) Unregister(c *comm.Comm) {
	cs.names.Delete(c.Context())
	cs.p.Survival.unregister(c)
	if cs.p.Job.Dialect != wire.Draft {
		return
	}
	cs.groups.Delete(c.Context())
	if c.Inter() {
		cs.Unregister(c.Local())
	}
}

// rankIn returns the rank of a peer in the group of a context. If the group is not known any more,
// it returns the rank in the world.
func (cs *communicators) rankIn(context wire.ContextID, peer message.Peer) wire.CommRank {
	if g, ok := cs.groups.Load(context &^ 1); ok {
		if rank, ok := g.(*comm.Group).Rank(comm.Proc(peer)); ok {
			return wire.CommRank(rank)
		}
	}
	return wire.CommRank(peer)
}

// DraftAgreement returns agree for a job in the draft dialect: a pair of our context IDs is one ID
// of the draft's.
func DraftAgreement(agree func(wire.ContextID) (wire.ContextID, error)) func(wire.ContextID) (wire.ContextID, error) {
	return func(mine wire.ContextID) (wire.ContextID, error) {
		agreed, err := agree(mine >> 1)
		if agreed >= comm.ContextLimit>>1 {
			return math.MaxUint64, err // none are left
		}
		return agreed<<1 | 1, err
	}
}

// State returns the state that higher packages of the engine keep in the communicator.
func (c *Comm) State() *CommState { return &c.state }

// Process returns the process that the communicator belongs to.
func (c *Comm) Process() *Process { return c.p }
