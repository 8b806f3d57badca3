package mpi

import (
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
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

// NeighborAllgather sends send to all neighbours and puts what comes from them,
// all of one length, into recv.
func NeighborAllgather[T Type](c *Comm, send, recv []T) error {
	return c.failed("NeighborAllgather", c.call(neighborCall(neighborAllgather, send, nil, nil, recv, nil, nil)))
}

// NeighborAllgatherv is NeighborAllgather of blocks of any length: counts[i]
// elements of neighbour i go to displs[i] of recv; without displs the blocks
// follow each other.
func NeighborAllgatherv[T Type](c *Comm, send, recv []T, counts, displs []int) error {
	return c.failed("NeighborAllgatherv", c.call(neighborCall(neighborAllgatherv, send, nil, nil, recv, counts, displs)))
}

// NeighborAlltoall sends block i of send to neighbour i, and puts what comes from
// neighbour i into block i of recv. All blocks have one length.
func NeighborAlltoall[T Type](c *Comm, send, recv []T) error {
	return c.failed("NeighborAlltoall", c.call(neighborCall(neighborAlltoall, send, nil, nil, recv, nil, nil)))
}

// NeighborAlltoallv is NeighborAlltoall of blocks of any length. Counts and
// displacements are by neighbour, in elements; without displacements blocks follow
// each other.
func NeighborAlltoallv[T Type](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return c.failed("NeighborAlltoallv", c.call(neighborCall(neighborAlltoallv, send, scounts, sdispls, recv, rcounts, rdispls)))
}

// neighborCall is a call over slices.
func neighborCall[T Type](w what, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) *call {
	return &call{
		what: w, kind: datatype.KindOf[T](),
		send: datatype.Bytes(send), counts: scounts, displs: sdispls,
		recv: datatype.Bytes(recv), rcounts: rcounts, rdispls: rdispls,
	}
}

// planNeighbors has the planner write an operation of neighbours.
func (a *call) planNeighbors(p *coll.Planner, s *coll.Schedule) error {
	switch a.what {
	case neighborAllgather:
		return p.NeighborAllgather(s, a.send, a.recv, a.kind)
	case neighborAllgatherv:
		return p.NeighborAllgatherv(s, a.send, a.recv, a.rcounts, a.rdispls, a.kind)
	case neighborAlltoall:
		return p.NeighborAlltoall(s, a.send, a.recv, a.kind)
	case neighborAlltoallv:
		return p.NeighborAlltoallv(s, a.send, a.counts, a.displs, a.recv, a.rcounts, a.rdispls, a.kind)
	default:
		return p.NeighborAlltoallw(s, a.out, a.in)
	}
}
