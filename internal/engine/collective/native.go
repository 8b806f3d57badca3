package collective

import (
	"errors"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/native"
)

// mostNative is the largest operation in which the site's MPI takes part, in bytes of a proc's
// buffer: it counts in an int, and some multiply counts.
const mostNative = 1 << 30

// nativeTypes and nativeOps are what the site's MPI knows as well, by the numbers of shim.h.
// Integers of 8 and 16 bits are left out: Open MPI 4.1.4 adds several of them at once with
// saturation (MPI_SUM of its component avx), where C wraps around.
var nativeTypes = map[datatype.Kind]int{
	datatype.Int32: 5, datatype.Uint32: 6,
	datatype.Int64: 7, datatype.Uint64: 8, datatype.Int: 7, datatype.Long: 7, datatype.Uint: 8, datatype.ULong: 8,
	datatype.Float32: 9, datatype.Float64: 10, datatype.Complex64: 11, datatype.Complex128: 12, datatype.Bool: 13,
	datatype.PairInt16: 14, datatype.PairInt32: 15, datatype.PairInt64: 16, datatype.PairInt: 16, datatype.PairLong: 16,
	datatype.PairFloat32: 17, datatype.PairFloat64: 18,
}

var nativeOps = map[*datatype.Op]int{
	datatype.Sum: 0, datatype.Prod: 1, datatype.Min: 2, datatype.Max: 3, datatype.BAnd: 4,
	datatype.BOr: 5, datatype.BXor: 6, datatype.LAnd: 7, datatype.LOr: 8, datatype.LXor: 9,
	datatype.MinLoc: 10, datatype.MaxLoc: 11,
}

// NativeType returns the number of a kind in the site's MPI, if there is one.
func NativeType(k datatype.Kind) (number int, ok bool) {
	number, ok = nativeTypes[k]
	return number, ok
}

// NativeOp returns the number of an operation in the site's MPI, if there is one.
func NativeOp(op *datatype.Op) (number int, ok bool) {
	number, ok = nativeOps[op]
	return number, ok
}

func nativeDoes(phase coll.Phase, k datatype.Kind, op *datatype.Op) bool {
	if phase != coll.PhaseReduce && phase != coll.PhaseAllreduce {
		return true
	}
	_, known := nativeTypes[k]
	_, can := nativeOps[op]
	return known && can && op.Check(k) == nil
}

// suits reports whether the site's MPI can take part in a call.
func suits(c *proc.Comm, a *Call) bool {
	switch a.What {
	case OpBarrier:
		return true
	case OpBcast, reduce, allreduce:
		return a.Kind.Valid() && a.amount(c.Size(), c.Rank()) <= mostNative
	case gather, allgather, alltoall: // the amount is the size of a block
		return a.Kind.Valid() && a.amount(c.Size(), c.Rank()) <= mostNative/uint64(c.Size())
	default:
		return false
	}
}

// teamOf returns the communicator of the site's MPI for the members of c that are at this site, nil
// if there is none. The first call makes it, and has to be a blocking collective operation: then
// all members are in the same one. All members of the site get the same answer.
//
// Only blocking operations use it, so that the members begin its operations in one order.
func teamOf(c *proc.Comm) *proc.NativeComm {
	if c.Process().Native == nil {
		return nil
	}
	cs := &c.State().Colls
	if cs.NativeSettled.Load() {
		return cs.NativeComm
	}
	cs.Joining.Lock()
	defer cs.Joining.Unlock()
	if !cs.NativeSettled.Load() {
		cs.NativeComm = makeTeam(c)
		cs.NativeSettled.Store(true)
	}
	return cs.NativeComm
}

func makeTeam(c *proc.Comm) *proc.NativeComm {
	p := c.Process()
	if c.Inter() || p.Check || !p.Job.Native || p.Native.Idle() {
		return nil
	}
	if p.Survival != nil {
		return nil // a wait in the site's MPI cannot end when another site is lost
	}
	team := c.Masters().Locals(c.Masters().Number(c.Rank()))
	if team.Size() < 2 {
		return nil
	}
	var ranks []int // in c
	var procs []wire.WorldRank
	for rank := range team.All() {
		member, _ := c.Comm.Group().At(int(rank))
		if !p.Native.Has(wire.WorldRank(member)) {
			return nil // it belongs to a spawned or connected world
		}
		ranks = append(ranks, int(rank))
		procs = append(procs, wire.WorldRank(member))
	}
	// Making a team blocks in the site's MPI, and other threads with it. Two procs whose threads
	// make two teams in a different order would wait for ever, so that with several threads only
	// the world has one. A team is useful where one of the members cannot be reached by the
	// transports that the route prefers to the site's MPI: then that MPI also does the part of
	// members on one host.
	fit := (c == p.Comms.World || p.Native.OneThread()) && p.Native.Carries(procs)
	if !meetTeam(c, ranks, fit) {
		return nil
	}
	planner := CollectivePlanner(c)
	t, err := p.Native.NewComm(procs, uint64(c.Context()))
	if !meetTeam(c, ranks, err == nil) { // for example, the site's MPI has no room for more
		return nil
	}
	t.Planner = planner.WithPhases(nativeDoes)
	return t
}

// tagTeam is the tag of meetTeam's messages, which the planner does not use.
const tagTeam wire.Tag = 2000

// meetTeam waits until all members of the site are in the call, and all messages of it have left:
// in what follows none of them makes progress. It reports whether all are fit; all get the same
// answer.
func meetTeam(c *proc.Comm, ranks []int, fit bool) bool {
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	peer := func(rank int) message.Peer {
		member, _ := c.Comm.Proc(rank)
		return message.Peer(member)
	}
	said := make([]byte, len(ranks)) // 1: the member at that index is fit
	if fit {
		said[0] = 1
	}
	send := func(rank int) *message.Request {
		env := message.Envelope{Context: c.CollectiveContext(), Rank: wire.CommRank(c.Rank()), Tag: tagTeam}
		return p.Endpoints.IsendBytes(peer(rank), env, said[:1])
	}
	recv := func(rank, into int) *message.Request {
		env := message.Envelope{Context: c.CollectiveContext(), Rank: wire.CommRank(rank), Tag: tagTeam}
		return p.Endpoints.IrecvBytes(env, peer(rank), said[into:into+1])
	}
	finish := func(list ...*message.Request) {
		for _, r := range list {
			p.Wait(r)
			p.Eng.Release(r)
		}
	}
	if first := ranks[0]; first != c.Rank() {
		finish(send(first))
		finish(recv(first, 0))
		return p.Failure == nil && said[0] == 1
	}
	var all []*message.Request
	for i, r := range ranks[1:] {
		all = append(all, recv(r, i+1))
	}
	finish(all...)
	for _, one := range said {
		said[0] &= one
	}
	all = all[:0]
	for _, r := range ranks[1:] {
		all = append(all, send(r))
	}
	finish(all...)
	return p.Failure == nil && said[0] == 1
}

func (x *collective) beginPhase(t *coll.Step) error {
	x.phase = native.Phase{What: uint8(t.Phase), Root: int(t.Peer), In: t.Src, Out: t.Dst, Failed: inNative(x.cause)}
	ph := &x.phase
	n := x.team.Size
	switch t.Phase {
	case coll.PhaseReduce, coll.PhaseAllreduce:
		ph.Type, ph.Op, ph.Count = nativeTypes[t.Kind], nativeOps[t.Op], t.Count
	case coll.PhaseBcast:
		ph.Count = len(t.Dst)
	case coll.PhaseGather, coll.PhaseAllgather:
		if ph.Count = len(t.Src); ph.Count == 0 {
			ph.Count = len(t.Dst) / n
		}
	case coll.PhaseAlltoall:
		ph.Count = len(t.Dst) / n
	default:
	}
	x.inPhase = true
	return x.c.Process().Native.Begin(x.team, ph)
}

// inNative is an error of a message as the site's MPI has it.
func inNative(err error) error {
	switch {
	case errors.Is(err, message.ErrTruncate):
		return native.ErrLonger
	case errors.Is(err, coll.ErrCount):
		return native.ErrShorter
	}
	return err
}

// FreeNativeComm frees the communicator of the site's MPI. All members of c do so.
func FreeNativeComm(c *proc.Comm) {
	cs := &c.State().Colls
	cs.Joining.Lock()
	defer cs.Joining.Unlock()
	if cs.NativeComm != nil {
		c.Process().Native.Leave(cs.NativeComm)
		cs.NativeComm = nil
	}
	cs.NativeSettled.Store(true)
}
