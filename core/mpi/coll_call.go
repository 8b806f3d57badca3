package mpi

import (
	"hash/fnv"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
)

// what is a collective operation.
type what uint8

const (
	barrier what = iota
	bcast
	gather
	gatherv
	scatter
	scatterv
	allgatherAll
	allgatherv
	alltoall
	alltoallv
	alltoallw
	reduce
	allreduceAll
	reduceScatter
	reduceScatterBlock
	scan
	exscan
	neighborAllgather
	neighborAllgatherv
	neighborAlltoall
	neighborAlltoallv
	neighborAlltoallw
)

var whatNames = [...]string{"Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
	"Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan",
	"Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw"}

// call is a collective operation and what it is called with, as the planner wants
// it: native elements of one kind.
type call struct {
	what             what
	kind             datatype.Kind
	root             int
	op               Op
	send, recv       []byte // of Bcast send alone
	counts, displs   []int  // of send where there are two, else the only ones
	rcounts, rdispls []int
	out, in          []coll.Piece // of Alltoallw and NeighborAlltoallw
}

// plan has the planner write the operation.
func (a *call) plan(p *coll.Planner, s *coll.Schedule) error {
	switch a.what {
	case barrier:
		return p.Barrier(s)
	case bcast:
		return p.Bcast(s, a.send, a.kind, a.root)
	case gather:
		return p.Gather(s, a.send, a.recv, a.kind, a.root)
	case gatherv:
		return p.Gatherv(s, a.send, a.recv, a.counts, a.displs, a.kind, a.root)
	case scatter:
		return p.Scatter(s, a.send, a.recv, a.kind, a.root)
	case scatterv:
		return p.Scatterv(s, a.send, a.counts, a.displs, a.recv, a.kind, a.root)
	case allgatherAll:
		return p.Allgather(s, a.send, a.recv, a.kind)
	case allgatherv:
		return p.Allgatherv(s, a.send, a.recv, a.counts, a.displs, a.kind)
	case alltoall:
		return p.Alltoall(s, a.send, a.recv, a.kind)
	case alltoallv:
		return p.Alltoallv(s, a.send, a.counts, a.displs, a.recv, a.rcounts, a.rdispls, a.kind)
	case alltoallw:
		return p.Alltoallw(s, a.out, a.in)
	case neighborAllgather, neighborAllgatherv, neighborAlltoall, neighborAlltoallv, neighborAlltoallw:
		return a.planNeighbors(p, s)
	default:
		return a.planReduction(p, s)
	}
}

func (a *call) planReduction(p *coll.Planner, s *coll.Schedule) error {
	switch a.what {
	case reduce:
		return p.Reduce(s, a.send, a.recv, a.kind, a.op, a.root)
	case allreduceAll:
		return p.Allreduce(s, a.send, a.recv, a.kind, a.op)
	case reduceScatter:
		return p.ReduceScatter(s, a.send, a.recv, a.counts, a.kind, a.op)
	case reduceScatterBlock:
		return p.ReduceScatterBlock(s, a.send, a.recv, a.kind, a.op)
	case scan:
		return p.Scan(s, a.send, a.recv, a.kind, a.op)
	default:
		return p.Exscan(s, a.send, a.recv, a.kind, a.op)
	}
}

// record is what all members of c must agree on.
func (a *call) record(c *Comm) coll.Call {
	r := coll.Call{Name: whatNames[a.what], Root: coll.NoRoot}
	if a.op != nil {
		r.Op = a.op.String()
	}
	switch a.what {
	case bcast, gather, gatherv, scatter, scatterv, reduce:
		r.Root = a.root
		if c.Inter() && a.root == Root {
			r.Root = ProcNull // the root's group agrees on where it is
		}
	default:
	}
	if !c.Inter() {
		if r.Bytes = a.amount(c.Size(), c.Rank()); r.Bytes > 0 {
			r.Kind = a.kind
		}
	}
	return r
}

// amount is what is the same for every member of n, me being this one.
func (a *call) amount(n, me int) uint64 {
	block := func(each, all []byte, place bool) uint64 {
		if each == nil && place {
			return uint64(len(all) / n)
		}
		return uint64(len(each))
	}
	switch a.what {
	case bcast:
		return uint64(len(a.send))
	case gather:
		return block(a.send, a.recv, me == a.root)
	case scatter:
		return block(a.recv, a.send, me == a.root)
	case allgatherAll:
		return block(a.send, a.recv, true)
	case alltoall:
		return uint64(len(a.recv) / n)
	case reduce, allreduceAll, scan, exscan:
		if a.send == nil {
			return uint64(len(a.recv))
		}
		return uint64(len(a.send))
	case reduceScatterBlock:
		if a.send == nil {
			return uint64(len(a.recv) / n)
		}
		return uint64(len(a.recv))
	case allgatherv, reduceScatter:
		h := fnv.New32a()
		var b [8]byte
		for _, c := range a.counts {
			for i := range b {
				b[i] = byte(c >> (8 * i))
			}
			h.Write(b[:])
		}
		return uint64(h.Sum32()) + 1
	default:
		return 0
	}
}

// plan plans a call for x, and its comparison with the others' if wanted.
func (x *collective) plan(a *call) error {
	err := a.plan(x.c.colls.planner, &x.main)
	if x.c.checks() {
		return x.compare(a.record(x.c), err)
	}
	return err
}

// call executes a collective operation.
func (c *Comm) call(a *call) error {
	if err := c.check(); err != nil {
		return err
	}
	if s := c.boardPlace(); s != nil {
		if block, ok := s.fits(a); ok {
			return s.run(a, block)
		}
	}
	x, err := c.begin()
	if err != nil {
		return err
	}
	return x.run(x.plan(a))
}

// startCall begins a collective operation.
func (c *Comm) startCall(fn string, a *call) (Request, error) {
	x, err := c.begin()
	if err != nil {
		return Request{}, err
	}
	return x.start(fn, x.plan(a))
}
