package collective

import (
	"hash/fnv"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Root is the argument of the root of an operation on an intercommunicator: MPI_ROOT (MPI-4.1,
// 6.2.3).
const Root = coll.Root

type operation uint8

// The operations, with the sections that define them.
const (
	OpBarrier operation = iota // MPI-4.1, 6.3
	OpBcast                    // MPI-4.1, 6.4
	gather                     // MPI-4.1, 6.5
	gatherv
	scatter // MPI-4.1, 6.6
	scatterv
	allgather // MPI-4.1, 6.7
	allgatherv
	alltoall // MPI-4.1, 6.8
	alltoallv
	alltoallw
	reduce             // MPI-4.1, 6.9.1
	allreduce          // MPI-4.1, 6.9.6
	reduceScatter      // MPI-4.1, 6.10.2
	reduceScatterBlock // MPI-4.1, 6.10.1
	scan               // MPI-4.1, 6.11.1
	exscan             // MPI-4.1, 6.11.2
	neighborAllgather  // MPI-4.1, 8.6.1
	neighborAllgatherv
	neighborAlltoall // MPI-4.1, 8.6.2
	neighborAlltoallv
	neighborAlltoallw
)

var whatNames = [...]string{"Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
	"Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan",
	"Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw"}

// Call is a collective operation with its arguments, as the planner accepts them: native elements
// of one kind.
type Call struct {
	What             operation
	Kind             datatype.Kind
	Root             int
	op               Op
	Send, recv       []byte // Bcast uses only send
	counts, displs   []int  // of send in operations that have counts for both buffers
	rcounts, rdispls []int
	out, in          []coll.Piece // of Alltoallw and NeighborAlltoallw
}

// NewMaxAllreduce returns an allreduce of elements of a kind that stores the largest of the
// members' elements in all.
func NewMaxAllreduce(k datatype.Kind, mine, all []byte) *Call {
	return &Call{What: allreduce, Kind: k, op: datatype.Max, Send: mine, recv: all}
}

func (a *Call) plan(p *coll.Planner, s *coll.Schedule) error {
	switch a.What {
	case OpBarrier:
		return p.Barrier(s)
	case OpBcast:
		return p.Bcast(s, a.Send, a.Kind, a.Root)
	case gather:
		return p.Gather(s, a.Send, a.recv, a.Kind, a.Root)
	case gatherv:
		return p.Gatherv(s, a.Send, a.recv, a.counts, a.displs, a.Kind, a.Root)
	case scatter:
		return p.Scatter(s, a.Send, a.recv, a.Kind, a.Root)
	case scatterv:
		return p.Scatterv(s, a.Send, a.counts, a.displs, a.recv, a.Kind, a.Root)
	case allgather:
		return p.Allgather(s, a.Send, a.recv, a.Kind)
	case allgatherv:
		return p.Allgatherv(s, a.Send, a.recv, a.counts, a.displs, a.Kind)
	case alltoall:
		return p.Alltoall(s, a.Send, a.recv, a.Kind)
	case alltoallv:
		return p.Alltoallv(s, a.Send, a.counts, a.displs, a.recv, a.rcounts, a.rdispls, a.Kind)
	case alltoallw:
		return p.Alltoallw(s, a.out, a.in)
	case neighborAllgather, neighborAllgatherv, neighborAlltoall, neighborAlltoallv, neighborAlltoallw:
		return a.planNeighbors(p, s)
	default:
		return a.planReduction(p, s)
	}
}

func (a *Call) planNeighbors(p *coll.Planner, s *coll.Schedule) error {
	switch a.What {
	case neighborAllgather:
		return p.NeighborAllgather(s, a.Send, a.recv, a.Kind)
	case neighborAllgatherv:
		return p.NeighborAllgatherv(s, a.Send, a.recv, a.counts, a.displs, a.Kind)
	case neighborAlltoall:
		return p.NeighborAlltoall(s, a.Send, a.recv, a.Kind)
	case neighborAlltoallv:
		return p.NeighborAlltoallv(s, a.Send, a.counts, a.displs, a.recv, a.rcounts, a.rdispls, a.Kind)
	default:
		return p.NeighborAlltoallw(s, a.out, a.in)
	}
}

func (a *Call) planReduction(p *coll.Planner, s *coll.Schedule) error {
	switch a.What {
	case reduce:
		return p.Reduce(s, a.Send, a.recv, a.Kind, a.op, a.Root)
	case allreduce:
		return p.Allreduce(s, a.Send, a.recv, a.Kind, a.op)
	case reduceScatter:
		return p.ReduceScatter(s, a.Send, a.recv, a.counts, a.Kind, a.op)
	case reduceScatterBlock:
		return p.ReduceScatterBlock(s, a.Send, a.recv, a.Kind, a.op)
	case scan:
		return p.Scan(s, a.Send, a.recv, a.Kind, a.op)
	default:
		return p.Exscan(s, a.Send, a.recv, a.Kind, a.op)
	}
}

// record returns what must be the same at all members of c, for their comparison.
func (a *Call) record(c *proc.Comm) coll.Call {
	r := coll.Call{Name: whatNames[a.What], Root: coll.NoRoot}
	if a.op != nil {
		r.Op = a.op.String()
	}
	switch a.What {
	case OpBcast, gather, gatherv, scatter, scatterv, reduce:
		r.Root = a.Root
		if c.Inter() && a.Root == Root {
			r.Root = proc.ProcNull // the root's group alone knows its rank
		}
	default:
	}
	if !c.Inter() {
		if r.Bytes = a.amount(c.Size(), c.Rank()); r.Bytes > 0 {
			r.Kind = a.Kind
		}
	}
	return r
}

// amount returns the number of bytes that must be the same at all n members: what is sent must be
// as long as what is received (MPI-4.1, 6.1). me is this member's rank.
func (a *Call) amount(n, me int) uint64 {
	block := func(each, all []byte, place bool) uint64 {
		if each == nil && place {
			return uint64(len(all) / n)
		}
		return uint64(len(each))
	}
	switch a.What {
	case OpBcast:
		return uint64(len(a.Send))
	case gather:
		return block(a.Send, a.recv, me == a.Root)
	case scatter:
		return block(a.recv, a.Send, me == a.Root)
	case allgather:
		return block(a.Send, a.recv, true)
	case alltoall:
		return uint64(len(a.recv) / n)
	case reduce, allreduce, scan, exscan:
		if a.Send == nil {
			return uint64(len(a.recv))
		}
		return uint64(len(a.Send))
	case reduceScatterBlock:
		if a.Send == nil {
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

// planner is the communicator's planner, with phases of the site's own MPI where x has them.
func (x *collective) planner() *coll.Planner {
	if x.team != nil {
		return x.team.Planner
	}
	return x.c.State().Colls.Planner
}

// Plan plans a call for x, with a comparison of the members' calls if the program asks for one.
func (x *collective) Plan(a *Call) error {
	err := a.plan(x.planner(), &x.main)
	if x.c.Checks() {
		return x.compare(a.record(x.c), err)
	}
	return err
}

// Execute does a blocking operation: on the board if the members share one and the call fits,
// otherwise by messages.
func Execute(c *proc.Comm, a *Call) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if s := BoardMember(c); s != nil {
		if block, ok := fits(s, a); ok {
			return run(s, a, block)
		}
	}
	x, err := Begin(c)
	if err != nil {
		return err
	}
	if suits(c, a) {
		x.team = teamOf(c)
	}
	return x.run(x.Plan(a))
}

// startCall begins a nonblocking operation (MPI-4.1, 6.12). fn is the name of the function that the
// program has called.
func startCall(c *proc.Comm, fn string, a *Call) (q proc.Request, err error) {
	if q, ok := startOnBoard(c, fn, a, nil); ok {
		return q, nil
	}
	x, err := Begin(c)
	if err != nil {
		return q, err
	}
	return x.start(fn, x.Plan(a))
}

// AllgatherSlices is Allgather for constructors, which report errors themselves.
func AllgatherSlices[T proc.Type](c *proc.Comm, send, recv []T) error {
	return Execute(c, &Call{What: allgather, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), Kind: datatype.KindOf[T]()})
}

// AllreduceSlices is Allreduce for constructors, which report errors themselves.
func AllreduceSlices[T proc.Type](c *proc.Comm, send, recv []T, op Op) error {
	return Execute(c, &Call{What: allreduce, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, Kind: datatype.KindOf[T]()})
}
