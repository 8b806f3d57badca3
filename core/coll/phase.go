package coll

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// A client may have an MPI of its own, which does collective operations among the client's members
// of the communicator faster than messages would. IMPI leaves it to the client how it works inside
// (IMPI ch.4, Utility functions), and other clients do not notice it. Such an operation is one step
// of the schedule, a Phase, that all members of the team execute.

// Phase is the operation of the client's own MPI in a step.
type Phase uint8

// The phases. Roots, and r, are places in the team, not ranks of the communicator.
const (
	NoPhase        Phase = iota
	PhaseBarrier         // barrier, without data
	PhaseBcast           // Dst of place Peer is copied to all others' Dst
	PhaseReduce          // all Src, of Count elements, are reduced into Dst of place Peer
	PhaseAllreduce       // all Src, or Dst if there is no Src, are reduced into all Dst
	PhaseGather          // all Src, of one length, are gathered in Dst of place Peer
	PhaseAllgather       // all Src, or the own block of Dst if there is no Src, are gathered in all Dst
	PhaseAlltoall        // block r of Src, or of Dst if there is no Src, goes to Dst of place r
)

// own reports whether the client's own MPI does a phase. op matters to reductions.
func (p plan) own(phase Phase, op *datatype.Op) bool {
	return p.profile.Phases != nil && !p.isHosts && p.remote == nil && p.team.size() > 1 && p.profile.Phases(phase, p.k, op)
}

// phase adds a phase that the client's own MPI does. What follows waits for it.
func (p plan) phase(phase Phase, root int, src, dst []byte) {
	p.add(Step{Action: Joint, Phase: phase, Peer: wire.CommRank(root), Kind: p.k, Src: src, Dst: dst})
	p.wait()
}

func (p barriers) ownBarrier() bool {
	ok := p.own(PhaseBarrier, nil)
	if ok {
		p.phase(PhaseBarrier, 0, nil, nil)
	}
	return ok
}

func (p reductions) ownReduce(a *accumulator, root int) bool {
	if len(a.cur) == 0 || !p.own(PhaseReduce, p.op) {
		return false
	}
	var into []byte
	if p.team.me == root {
		into = a.buffer()
	}
	p.add(Step{Action: Joint, Phase: PhaseReduce, Peer: wire.CommRank(root), Kind: p.k, Op: p.op, Count: len(a.cur) / p.k.Size(), Src: a.cur, Dst: into})
	p.wait()
	if into != nil {
		if a.mine {
			a.spare = a.cur
		}
		a.cur, a.mine = into, true
	}
	return true
}

func (p allreductions) ownAllreduce(own, recv []byte) bool {
	if !p.single() || len(own) == 0 || !p.own(PhaseAllreduce, p.op) {
		return false
	}
	if same(own, recv) {
		own = nil
	}
	p.add(Step{Action: Joint, Phase: PhaseAllreduce, Kind: p.k, Op: p.op, Count: len(recv) / p.k.Size(), Src: own, Dst: recv})
	return true
}

func (p allgathers) ownAllgather(own, recv []byte) bool {
	if n := len(own); n > 0 && same(own, recv[p.me*n:]) {
		own = nil
	}
	return p.ownBlocks(PhaseAllgather, own, recv)
}

// ownBlocks is an operation without a root on blocks of one length, of a communicator inside one
// client.
func (p plan) ownBlocks(phase Phase, src, dst []byte) bool {
	if !p.single() || len(src)+len(dst) == 0 || !p.own(phase, nil) {
		return false
	}
	p.phase(phase, 0, src, dst)
	return true
}

// ownGather brings the blocks of a client to the process in place root, which has parts by place.
// Scatter has no phase.
func (p rooted) ownGather(own []byte, all parts, root int) bool {
	if p.scatter || len(own) == 0 || !p.own(PhaseGather, nil) {
		return false
	}
	if p.team.me != root {
		p.phase(PhaseGather, root, own, nil)
		return true
	}
	whole, inPlace := p.piece(all, 0, p.team.size())
	if inPlace && same(own, all.at(root)) {
		own = nil
	}
	p.add(Step{Action: Joint, Phase: PhaseGather, Peer: wire.CommRank(root), Kind: p.k, Src: own, Dst: whole})
	for i := 0; i < p.team.size() && !inPlace; i++ {
		p.afterwards(Step{Action: Copy, Dst: all.at(i), Src: whole[i*len(own):][:len(own)]})
	}
	p.wait()
	return true
}

func (p exchanges) ownExchange(from, to *parts) bool {
	if from.block == 0 || !p.own(PhaseAlltoall, nil) {
		return false
	}
	in := chosen{parts: *to, ranks: p.team.ranks}
	whole, inPlace := p.together(&in)
	p.add(Step{Action: Joint, Phase: PhaseAlltoall, Kind: p.k, Src: p.picked(*from, p.team.ranks), Dst: whole})
	if !inPlace {
		p.unpack(&in, whole)
	}
	return true
}
