package mpi

import (
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
)

// The collective operations. All members of the communicator call the same ones
// in the same order, with the same root, operation and amounts. Each call blocks
// until the caller's part is done, which says nothing about the others, but for
// Barrier. Buffers must not overlap.
//
// A nil send buffer means in place (MPI_IN_PLACE): what the caller contributes
// is in its receive buffer, where its result goes.
//
// On an intercommunicator what one group contributes the other gets, and nothing
// is in place. There the root gives Root as the root, the others of its group
// ProcNull, and the members of the other group the root's rank.

// Root is what the root of an operation on an intercommunicator gives as root.
const Root = coll.Root

// Barrier blocks until all members have called it; of an intercommunicator, those
// of the other group.
func Barrier(c *Comm) error {
	return c.failed("Barrier", c.call(&call{what: barrier}))
}

// Bcast sends the root's buf to everybody's.
func Bcast[T Type](c *Comm, buf []T, root int) error {
	return c.failed("Bcast", c.call(&call{what: bcast, send: datatype.Bytes(buf), root: root, kind: datatype.KindOf[T]()}))
}

// Gather puts everybody's send, all of one length, into the root's recv, by
// rank. recv matters at the root only; in place the root's block is at its rank.
func Gather[T Type](c *Comm, send, recv []T, root int) error {
	return c.failed("Gather", c.call(&call{what: gather, send: datatype.Bytes(send), recv: datatype.Bytes(recv), root: root, kind: datatype.KindOf[T]()}))
}

// Gatherv is Gather of blocks of any length: counts[r] elements of rank r go to
// displs[r] of recv; without displs the blocks follow each other. recv, counts
// and displs matter at the root only.
func Gatherv[T Type](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return c.failed("Gatherv", c.call(&call{what: gatherv, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, root: root, kind: datatype.KindOf[T]()}))
}

// Scatter gives each rank its block of the root's send, all of the length of
// recv. send matters at the root only. With a nil recv the root's own block
// stays where it is.
func Scatter[T Type](c *Comm, send, recv []T, root int) error {
	return c.failed("Scatter", c.call(&call{what: scatter, send: datatype.Bytes(send), recv: datatype.Bytes(recv), root: root, kind: datatype.KindOf[T]()}))
}

// Scatterv is Scatter of blocks of any length: rank r gets counts[r] elements
// from displs[r] of send; without displs the blocks follow each other. send,
// counts and displs matter at the root only.
func Scatterv[T Type](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	return c.failed("Scatterv", c.call(&call{what: scatterv, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, root: root, kind: datatype.KindOf[T]()}))
}

// Allgather is Gather with the result for everybody.
func Allgather[T Type](c *Comm, send, recv []T) error {
	return c.failed("Allgather", c.call(&call{what: allgatherAll, send: datatype.Bytes(send), recv: datatype.Bytes(recv), kind: datatype.KindOf[T]()}))
}

// Allgatherv is Gatherv with the result for everybody. All give the same counts.
func Allgatherv[T Type](c *Comm, send, recv []T, counts, displs []int) error {
	return c.failed("Allgatherv", c.call(&call{what: allgatherv, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, kind: datatype.KindOf[T]()}))
}

// Alltoall sends block r of send to rank r, where it becomes the block of the
// sender's rank in recv. All blocks have one length.
func Alltoall[T Type](c *Comm, send, recv []T) error {
	return c.failed("Alltoall", c.call(&call{what: alltoall, send: datatype.Bytes(send), recv: datatype.Bytes(recv), kind: datatype.KindOf[T]()}))
}

// Alltoallv is Alltoall of blocks of any length. Counts and displacements are by
// rank, in elements; without displacements blocks follow each other. In place
// means that send and scounts are nil.
func Alltoallv[T Type](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return c.failed("Alltoallv", c.call(&call{what: alltoallv, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: scounts, displs: sdispls, rcounts: rcounts, rdispls: rdispls, kind: datatype.KindOf[T]()}))
}

// allgather is Allgather for constructors.
func allgather[T Type](c *Comm, send, recv []T) error {
	return c.call(&call{what: allgatherAll, send: datatype.Bytes(send), recv: datatype.Bytes(recv), kind: datatype.KindOf[T]()})
}
