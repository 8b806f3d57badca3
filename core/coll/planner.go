package coll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// Errors of arguments. Every member can detect most of them alone, before anything is sent.
var (
	// ErrRoot is wrapped when the root is not a rank of the communicator.
	ErrRoot = errors.New("invalid root")
	// ErrCount is wrapped when counts or displacements make no sense.
	ErrCount = errors.New("invalid count")
	// ErrBuffer is wrapped when buffers have the wrong length or overlap.
	ErrBuffer = errors.New("invalid buffer")
)

// The tags between clients. Inside a client they are higher by inner.
//
// IMPI ch.4, Collective tags.
const (
	tagBarrier   wire.Tag = 110
	tagBcast     wire.Tag = 120
	tagGather    wire.Tag = 130
	tagGatherv   wire.Tag = 140
	tagScatter   wire.Tag = 150
	tagScatterv  wire.Tag = 160
	tagAlltoall  wire.Tag = 170
	tagAlltoallv wire.Tag = 180
	tagReduce    wire.Tag = 190
	tagScan      wire.Tag = 200

	inner wire.Tag = 1000

	// Operations that are compositions of others between clients, so that IMPI has no tags for
	// them.
	tagAllgather     wire.Tag = 300
	tagAllreduce     wire.Tag = 310
	tagReduceScatter wire.Tag = 320
	tagLengths       wire.Tag = 330
	tagCheck         wire.Tag = 340
)

// tagBits is how many bits the tags above take.
const tagBits = 11

// StepTag returns the tag of a step of operation number n of a communicator. Among processes that
// all number the operations, concurrent operations cannot receive each other's messages, and
// messages left by a failed operation are not mistaken for those of a later one.
func StepTag(tag wire.Tag, n uint32) wire.Tag {
	return wire.Tag(n<<tagBits&(1<<31-1)) | tag
}

// Peer describes another client to collective operations.
type Peer struct {
	Rep datatype.Representation // of the data between the other client and this one
	// ReduceOnPointToPoint puts the messages of Reduce into the point-to-point context, both ways.
	// LAM/MPI does so, whose only communicator is the world; IMPI uses the second context for them
	// (IMPI ch.4, Context IDs).
	ReduceOnPointToPoint bool
}

// Profile is what the members of a job have agreed on at startup (IMPI ch.2, C_COLL_XSIZE and
// C_COLL_MAXLINEAR).
type Profile struct {
	XSize     int    // blocks of at least this many bytes are sent directly, shorter ones by way of the masters
	MaxLinear int    // up to this many clients send to one directly; more use a tree
	Clients   []Peer // by client rank; clients beyond its end use external32
	Tuning    Tuning // must be the same in all processes of a client
	// AllImpi is true if all members run this library and plan with the same Tuning, so that they may
	// use messages other than IMPI's between them.
	AllImpi bool
	// Hosts maps the processes of this client to their hosts, with host ranks where Clients has
	// client ranks, or is nil if all are on one host. It is the same in all processes of the
	// client.
	Hosts *comm.Clients
	// Phases reports whether this client's own MPI can do a phase, for elements of a kind and, for
	// reductions, with an operation. nil means that it can do none. It is the same in all processes
	// of the client.
	Phases func(Phase, datatype.Kind, *datatype.Op) bool
}

// Tuning contains the crossovers inside a client, and between clients that are all ours or its
// hosts, in bytes of one process's buffer or block; FlatProcs counts processes. Fields named Long
// apply to sizes from their value on, the others to sizes up to their value. Zero means the
// default, a negative value means zero.
type Tuning struct {
	BcastLong         int // scatter and allgather instead of a tree
	GatherLong        int // directly to and from the root instead of by a tree
	AllgatherLong     int // ring instead of doubling
	AlltoallShort     int // up to this size other processes forward blocks
	AllreduceLong     int // in blocks around a ring instead of doubling
	ReduceScatterLong int // block by block instead of by Allreduce
	WideLong          int // each block between clients is a message, instead of all blocks of a client together
	StripesLong       int // vectors between clients are divided among several processes of a client
	AlltoallWide      int // up to this size blocks between clients go by way of the masters
	Direct            int // up to this many clients of ours exchange messages all at once, without a tree
	DirectLong        int // vectors of clients of ours are combined part by part, a part at each client
	FlatProcs         int // up to this many processes on a host use no trees
	FlatAllreduceLong int // AllreduceLong where no trees are used
	PairAllreduceLong int // AllreduceLong of two processes
}

func (t Tuning) withDefaults() Tuning {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&t.BcastLong, 64 << 10}, {&t.GatherLong, 2 << 10}, {&t.AllgatherLong, 8 << 10},
		{&t.AlltoallShort, 256}, {&t.AllreduceLong, 32 << 10}, {&t.ReduceScatterLong, 2 << 10},
		{&t.WideLong, 64 << 10}, {&t.StripesLong, 64 << 10}, {&t.AlltoallWide, 1 << 10},
		{&t.Direct, 16}, {&t.DirectLong, 1 << 20},
		{&t.FlatProcs, 4}, {&t.FlatAllreduceLong, 128 << 10}, {&t.PairAllreduceLong, 512 << 10},
	} {
		switch {
		case *f.field == 0:
			*f.field = f.value
		case *f.field < 0:
			*f.field = 0
		}
	}
	return t
}

func (p *Profile) peer(c wire.ClientRank) Peer {
	if int(c) < len(p.Clients) {
		return p.Clients[c]
	}
	return Peer{Rep: datatype.External32}
}

// Planner plans the collectives of one communicator (MPI-4.1, ch. 6). It does not change, so any
// goroutine may use it, with a Schedule of its own.
//
// Buffers hold native elements of the kind. Each operation compiles into s, which is Reset first. A
// nil send buffer where there is something to send means in place, as MPI_IN_PLACE says it for the
// operation. Buffers must not change and not be looked at until the schedule has been executed.
type Planner struct {
	comm    *comm.Comm
	m       *comm.Masters
	profile Profile
	peers   []Peer // by master number
	n, me   int
	mine    int // number of the own master
	team    team
	sites   sites
	remote  *remote // set for an intercommunicator

	ranks        *comm.Group // this planner's ranks as ranks of the communicator; nil: they are the same
	betweenHosts *Planner    // plans between the hosts of the own client; nil: one host
	samePlace    *Planner    // of betweenHosts: plans between the processes with this one's place on their hosts; nil if not every host has one
	isHosts      bool        // all messages are inside the client
	scattered    bool        // the team is on several hosts

	neighbours atomic.Pointer[neighbours] // cached by Neighbors
}

// team is the local group: the ranks of one client, ascending.
type team struct {
	ranks *comm.Group // members are ranks of the communicator
	me    int         // index of this process
}

func (t team) size() int { return t.ranks.Size() }

// rank returns the communicator's rank of the process at a place, taken modulo the team's size.
func (t team) rank(place int) int {
	n := t.size()
	if place >= n {
		place -= n
	} else if place < 0 {
		place += n
	}
	rank, _ := t.ranks.At(place)
	return int(rank)
}

// NewPlanner makes the planner of this process for collective operations on c. It fills in the
// defaults of p.Tuning.
func NewPlanner(c *comm.Comm, p Profile) *Planner {
	p.Tuning = p.Tuning.withDefaults()
	return newPlanner(c, p)
}

// newPlanner is NewPlanner for a profile whose Tuning has no defaults any more.
func newPlanner(c *comm.Comm, p Profile) *Planner {
	m := c.Masters()
	pl := &Planner{comm: c, m: m, profile: p, n: c.Size(), me: c.Rank(), mine: m.Number(c.Rank())}
	pl.team = team{ranks: m.Locals(pl.mine), me: m.LocalIndex(pl.me)}
	pl.peers = make([]Peer, m.Count())
	for i := range pl.peers {
		pl.peers[i] = p.peer(m.Client(i))
	}
	pl.sites = newSites(m, p.AllImpi)
	if pl.betweenHosts, pl.scattered = newHostPlanner(pl, p.Hosts); pl.scattered {
		pl.profile.Tuning.FlatProcs = 0
	}
	return pl
}

// WithPhases returns the planner of the same communicator with another Profile.Phases.
func (p *Planner) WithPhases(does func(Phase, datatype.Kind, *datatype.Op) bool) *Planner {
	profile := p.profile
	profile.Phases = does
	return newPlanner(p.comm, profile)
}

func (p *Planner) single() bool { return p.m.Count() == 1 }

func (p *Planner) commRank(rank int) wire.CommRank {
	if p.ranks != nil {
		r, _ := p.ranks.At(rank)
		rank = int(r)
	}
	return wire.CommRank(rank)
}

// linear reports whether all clients send to one directly instead of forming a tree. IMPI ch.4,
// Collective crossovers: masters are counted, and the limit itself is linear.
func (p *Planner) linear() bool { return p.m.Count() <= p.profile.MaxLinear || p.direct() }

// direct reports whether clients of ours exchange messages all at once: between sites that are far
// from each other, what costs time is how often one waits for the other.
func (p *Planner) direct() bool {
	return p.sites.ours && !p.isHosts && p.m.Count() <= p.profile.Tuning.Direct
}

// delegate returns the rank that sends and receives for a client, given by master number, in an
// operation with a root: the root itself in its own client, the master elsewhere.
func (p *Planner) delegate(number, root int) int {
	if p.m.Number(root) == number {
		return root
	}
	return p.m.Rank(number)
}

// context returns the context ID of messages between clients. IMPI ch.4, Context IDs: collectives
// use the communicator's second one.
func (p plan) context(peer *Peer, tag wire.Tag) wire.ContextID {
	if tag == tagReduce && peer.ReduceOnPointToPoint {
		return p.comm.Context()
	}
	return p.comm.CollectiveContext()
}

// encode adds the conversion of buf to r and returns where the result will be: buf if there is
// nothing to convert, or the result of the same conversion earlier in the round.
func (s *Schedule) encode(r datatype.Representation, buf []byte, k datatype.Kind) []byte {
	if len(buf) == 0 || r.Identity(k) {
		return buf
	}
	e := &s.encoded
	if e.Rep == r && e.Kind == k && same(e.Src, buf) && len(e.Src) == len(buf) {
		return e.Dst
	}
	n := len(buf) / k.Size()
	*e = Step{Action: Encode, Rep: r, Kind: k, Count: n, Src: buf, Dst: s.scratch.get(n * r.Size(k))}
	s.add(*e)
	return e.Dst
}

// landing returns the memory into which to receive data in representation r that are to be in buf
// after the round, and adds the conversion.
func (s *Schedule) landing(r datatype.Representation, buf []byte, k datatype.Kind) []byte {
	if len(buf) == 0 || r.Identity(k) {
		return buf
	}
	into, n := buf, len(buf)/k.Size()
	if r.Size(k) != k.Size() {
		into = s.scratch.get(n * r.Size(k))
	}
	s.afterwards(Step{Action: Decode, Rep: r, Kind: k, Count: n, Src: into, Dst: buf})
	return into
}

func (p plan) checkRoot(root int) error {
	if p.remote != nil {
		return p.interRoot(root)
	}
	if uint(root) >= uint(p.n) {
		return fmt.Errorf("coll: %w: %d, the communicator has %d members", ErrRoot, root, p.n)
	}
	return nil
}

// significant returns those buffers of an operation with a root that matter in this process:
// everybody's own, and at the root the root's (MPI-4.1, 6.5).
func (p plan) significant(everybody, roots []byte, root int) (e, r []byte) {
	switch {
	case p.remote == nil && p.me == root:
		return everybody, roots
	case p.remote == nil || root >= 0:
		return everybody, nil
	case root == Root:
		return nil, roots
	}
	return nil, nil
}

func checkBuffer(name string, b []byte, k datatype.Kind) error {
	if !k.Valid() {
		return fmt.Errorf("coll: %w: %d", datatype.ErrKind, k)
	}
	if len(b)%k.Size() != 0 {
		return fmt.Errorf("coll: %w: %s of %d bytes does not hold whole elements of %v", ErrBuffer, name, len(b), k)
	}
	return nil
}

// checkPair checks a send and a receive buffer: whole elements, and no overlap: one buffer for both
// is MPI_IN_PLACE (MPI-4.1, 6.2.1), here a nil send buffer.
func checkPair(send, recv []byte, k datatype.Kind) error {
	if err := checkBuffer("the send buffer", send, k); err != nil {
		return err
	}
	if err := checkBuffer("the receive buffer", recv, k); err != nil {
		return err
	}
	if Overlap(send, recv) {
		return fmt.Errorf("coll: %w: send and receive buffers overlap; for in place pass no send buffer", ErrBuffer)
	}
	return nil
}

// Overlap reports whether two buffers have memory in common.
func Overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	pa, pb := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return pa < pb+uintptr(len(b)) && pb < pa+uintptr(len(a))
}

func putLength(b []byte, n int) { binary.BigEndian.PutUint64(b, uint64(n)) }

func length(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
