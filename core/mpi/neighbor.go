package mpi

import (
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// NeighborAllgather sends send to all neighbours and puts what comes from them,
// all of one length, into recv.
func NeighborAllgather[T Type](c *Comm, send, recv []T) error {
	return collective.NeighborAllgather(c.in(), send, recv)
}

// NeighborAllgatherv is NeighborAllgather of blocks of any length: counts[i]
// elements of neighbour i go to displs[i] of recv; without displs the blocks
// follow each other.
func NeighborAllgatherv[T Type](c *Comm, send, recv []T, counts, displs []int) error {
	return collective.NeighborAllgatherv(c.in(), send, recv, counts, displs)
}

// NeighborAlltoall sends block i of send to neighbour i, and puts what comes from
// neighbour i into block i of recv. All blocks have one length.
func NeighborAlltoall[T Type](c *Comm, send, recv []T) error {
	return collective.NeighborAlltoall(c.in(), send, recv)
}

// NeighborAlltoallv is NeighborAlltoall of blocks of any length. Counts and
// displacements are by neighbour, in elements; without displacements blocks follow
// each other.
func NeighborAlltoallv[T Type](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return collective.NeighborAlltoallv(c.in(), send, scounts, sdispls, recv, rcounts, rdispls)
}

// NeighborAllgather sends send to all neighbours and puts what comes from them into recv,
// which has a block for each.
func (c *Comm) NeighborAllgather(send, recv Buffer) error {
	return collective.NeighborAllgatherItems(c.in(), proc.Buffer(send), proc.Buffer(recv))
}

// NeighborAllgatherv is NeighborAllgather of blocks of any length: counts[i] items of
// neighbour i go to item displs[i] of recv; without displs the blocks follow each
// other.
func (c *Comm) NeighborAllgatherv(send, recv Buffer, counts, displs []int) error {
	return collective.NeighborAllgathervItems(c.in(), proc.Buffer(send), proc.Buffer(recv), counts, displs)
}

// NeighborAlltoall sends block i of send to neighbour i, and puts what comes from
// neighbour i into block i of recv.
func (c *Comm) NeighborAlltoall(send, recv Buffer) error {
	return collective.NeighborAlltoallItems(c.in(), proc.Buffer(send), proc.Buffer(recv))
}

// NeighborAlltoallv is NeighborAlltoall of blocks of any length. Counts and
// displacements are by neighbour, in items; without displacements blocks follow
// each other.
func (c *Comm) NeighborAlltoallv(send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int) error {
	return collective.NeighborAlltoallvItems(c.in(), proc.Buffer(send), scounts, sdispls, proc.Buffer(recv), rcounts, rdispls)
}

// NeighborAlltoallw is NeighborAlltoall of blocks that each have their own place and
// datatype, by neighbour.
func (c *Comm) NeighborAlltoallw(send, recv []Buffer) error {
	return collective.NeighborAlltoallw(c.in(), inner[proc.Buffer](send), inner[proc.Buffer](recv))
}
