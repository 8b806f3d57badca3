package collective

import (
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// The collective operations of neighbours: all members of a communicator with a
// topology call them, and each exchanges with its neighbours only. A buffer with
// a block for each neighbour has them in the order of the topology: on a grid the
// rank below and the rank above in each dimension (CartShift by 1), on a graph
// that of GraphNeighbors, on a distributed graph those of DistGraphNeighbors.
//
// On a grid what goes to the rank below comes in there as what is from above, also
// where both are the same rank. On graphs several messages from one rank to
// another come in in the order in which they go out. A block of a neighbour beyond
// the edge of a grid is neither sent nor written. Of a GraphCreate all edges must
// lead both ways. Nothing is in place, and buffers must not overlap.

func NeighborAllgather[T proc.Type](c *proc.Comm, send, recv []T) error {
	return c.Failed("NeighborAllgather", Execute(c, neighborCall(neighborAllgather, send, nil, nil, recv, nil, nil)))
}

func NeighborAllgatherv[T proc.Type](c *proc.Comm, send, recv []T, counts, displs []int) error {
	return c.Failed("NeighborAllgatherv", Execute(c, neighborCall(neighborAllgatherv, send, nil, nil, recv, counts, displs)))
}

func NeighborAlltoall[T proc.Type](c *proc.Comm, send, recv []T) error {
	return c.Failed("NeighborAlltoall", Execute(c, neighborCall(neighborAlltoall, send, nil, nil, recv, nil, nil)))
}

func NeighborAlltoallv[T proc.Type](c *proc.Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return c.Failed("NeighborAlltoallv", Execute(c, neighborCall(neighborAlltoallv, send, scounts, sdispls, recv, rcounts, rdispls)))
}

// neighborCall is a call over slices.
func neighborCall[T proc.Type](w what, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) *Call {
	return &Call{
		What: w, Kind: datatype.KindOf[T](),
		Send: datatype.Bytes(send), counts: scounts, displs: sdispls,
		recv: datatype.Bytes(recv), rcounts: rcounts, rdispls: rdispls,
	}
}

// planNeighbors has the planner write an operation of neighbours.
func (a *Call) planNeighbors(p *coll.Planner, s *coll.Schedule) error {
	switch a.What {
	case neighborAllgather:
		return p.NeighborAllgather(s, a.Send, a.recv, a.Kind)
	case neighborAllgatherv:
		return p.NeighborAllgatherv(s, a.Send, a.recv, a.rcounts, a.rdispls, a.Kind)
	case neighborAlltoall:
		return p.NeighborAlltoall(s, a.Send, a.recv, a.Kind)
	case neighborAlltoallv:
		return p.NeighborAlltoallv(s, a.Send, a.counts, a.displs, a.recv, a.rcounts, a.rdispls, a.Kind)
	default:
		return p.NeighborAlltoallw(s, a.out, a.in)
	}
}
