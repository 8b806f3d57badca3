package mpi

import (
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Root is what the root of an operation on an intercommunicator gives as root.
const Root = collective.Root

// Barrier blocks until all members have called it; of an intercommunicator, those
// of the other group.
func Barrier(c *Comm) error { return collective.Barrier(c.in()) }

// Bcast sends the root's buf to everybody's.
func Bcast[T Type](c *Comm, buf []T, root int) error { return collective.Bcast(c.in(), buf, root) }

// Gather puts everybody's send, all of one length, into the root's recv, by
// rank. recv matters at the root only; in place the root's block is at its rank.
func Gather[T Type](c *Comm, send, recv []T, root int) error {
	return collective.Gather(c.in(), send, recv, root)
}

// Gatherv is Gather of blocks of any length: counts[r] elements of rank r go to
// displs[r] of recv; without displs the blocks follow each other. recv, counts
// and displs matter at the root only.
func Gatherv[T Type](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return collective.Gatherv(c.in(), send, recv, counts, displs, root)
}

// Scatter gives each rank its block of the root's send, all of the length of
// recv. send matters at the root only. With a nil recv the root's own block
// stays where it is.
func Scatter[T Type](c *Comm, send, recv []T, root int) error {
	return collective.Scatter(c.in(), send, recv, root)
}

// Scatterv is Scatter of blocks of any length: rank r gets counts[r] elements
// from displs[r] of send; without displs the blocks follow each other. send,
// counts and displs matter at the root only.
func Scatterv[T Type](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	return collective.Scatterv(c.in(), send, counts, displs, recv, root)
}

// Allgather is Gather with the result for everybody.
func Allgather[T Type](c *Comm, send, recv []T) error {
	return collective.Allgather(c.in(), send, recv)
}

// Allgatherv is Gatherv with the result for everybody. All give the same counts.
func Allgatherv[T Type](c *Comm, send, recv []T, counts, displs []int) error {
	return collective.Allgatherv(c.in(), send, recv, counts, displs)
}

// Alltoall sends block r of send to rank r, where it becomes the block of the
// sender's rank in recv. All blocks have one length.
func Alltoall[T Type](c *Comm, send, recv []T) error { return collective.Alltoall(c.in(), send, recv) }

// Alltoallv is Alltoall of blocks of any length. Counts and displacements are by
// rank, in elements; without displacements blocks follow each other. In place
// means that send and scounts are nil.
func Alltoallv[T Type](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return collective.Alltoallv(c.in(), send, scounts, sdispls, recv, rcounts, rdispls)
}

// Barrier is the function Barrier.
func (c *Comm) Barrier() error { return collective.Barrier(c.in()) }

// Bcast sends the root's items to everybody's b.
func (c *Comm) Bcast(b Buffer, root int) error {
	return collective.BcastItems(c.in(), proc.Buffer(b), root)
}

// Gather puts everybody's send into the root's recv, which has a block for each
// rank: it matters at the root only, where send may be InPlace.
func (c *Comm) Gather(send, recv Buffer, root int) error {
	return collective.GatherItems(c.in(), proc.Buffer(send), proc.Buffer(recv), root)
}

// Gatherv is Gather of blocks of any length: counts[r] items of rank r go to item
// displs[r] of recv; without displs the blocks follow each other. recv, counts
// and displs matter at the root only.
func (c *Comm) Gatherv(send, recv Buffer, counts, displs []int, root int) error {
	return collective.GathervItems(c.in(), proc.Buffer(send), proc.Buffer(recv), counts, displs, root)
}

// Scatter gives each rank its block of the root's send, which matters at the root
// only, where recv may be InPlace.
func (c *Comm) Scatter(send, recv Buffer, root int) error {
	return collective.ScatterItems(c.in(), proc.Buffer(send), proc.Buffer(recv), root)
}

// Scatterv is Scatter of blocks of any length: rank r gets counts[r] items from
// item displs[r] of send on; without displs the blocks follow each other. send,
// counts and displs matter at the root only.
func (c *Comm) Scatterv(send Buffer, counts, displs []int, recv Buffer, root int) error {
	return collective.ScattervItems(c.in(), proc.Buffer(send), counts, displs, proc.Buffer(recv), root)
}

// Allgather is Gather with the result for everybody. send may be InPlace.
func (c *Comm) Allgather(send, recv Buffer) error {
	return collective.AllgatherItems(c.in(), proc.Buffer(send), proc.Buffer(recv))
}

// Allgatherv is Gatherv with the result for everybody. All give the same counts.
// send may be InPlace.
func (c *Comm) Allgatherv(send, recv Buffer, counts, displs []int) error {
	return collective.AllgathervItems(c.in(), proc.Buffer(send), proc.Buffer(recv), counts, displs)
}

// Alltoall sends block r of send to rank r, where it becomes the block of the
// sender's rank in recv. send may be InPlace.
func (c *Comm) Alltoall(send, recv Buffer) error {
	return collective.AlltoallItems(c.in(), proc.Buffer(send), proc.Buffer(recv))
}

// Alltoallv is Alltoall of blocks of any length. Counts and displacements are by
// rank, in items; without displacements blocks follow each other. send may be
// InPlace.
func (c *Comm) Alltoallv(send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int) error {
	return collective.AlltoallvItems(c.in(), proc.Buffer(send), scounts, sdispls, proc.Buffer(recv), rcounts, rdispls)
}

// Alltoallw is Alltoall of blocks that each have their own place and datatype, by
// rank. Without send it is in place.
func (c *Comm) Alltoallw(send, recv []Buffer) error {
	return collective.Alltoallw(c.in(), inner[proc.Buffer](send), inner[proc.Buffer](recv))
}
