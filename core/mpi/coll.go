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

// Barrier blocks until all members have called it.
func Barrier(c *Comm) error {
	return c.failed("Barrier", c.collective((*coll.Planner).Barrier))
}

// Bcast sends the root's buf to everybody's.
func Bcast[T Type](c *Comm, buf []T, root int) error {
	return c.failed("Bcast", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Bcast(s, datatype.Bytes(buf), datatype.KindOf[T](), root)
	}))
}

// Gather puts everybody's send, all of one length, into the root's recv, by
// rank. recv matters at the root only; in place the root's block is at its rank.
func Gather[T Type](c *Comm, send, recv []T, root int) error {
	return c.failed("Gather", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Gather(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), root)
	}))
}

// Gatherv is Gather of blocks of any length: counts[r] elements of rank r go to
// displs[r] of recv; without displs the blocks follow each other. recv, counts
// and displs matter at the root only.
func Gatherv[T Type](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return c.failed("Gatherv", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Gatherv(s, datatype.Bytes(send), datatype.Bytes(recv), counts, displs, datatype.KindOf[T](), root)
	}))
}

// Scatter gives each rank its block of the root's send, all of the length of
// recv. send matters at the root only. With a nil recv the root's own block
// stays where it is.
func Scatter[T Type](c *Comm, send, recv []T, root int) error {
	return c.failed("Scatter", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Scatter(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), root)
	}))
}

// Scatterv is Scatter of blocks of any length: rank r gets counts[r] elements
// from displs[r] of send; without displs the blocks follow each other. send,
// counts and displs matter at the root only.
func Scatterv[T Type](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	return c.failed("Scatterv", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Scatterv(s, datatype.Bytes(send), counts, displs, datatype.Bytes(recv), datatype.KindOf[T](), root)
	}))
}

// Allgather is Gather with the result for everybody.
func Allgather[T Type](c *Comm, send, recv []T) error {
	return c.failed("Allgather", allgather(c, send, recv))
}

func allgather[T Type](c *Comm, send, recv []T) error {
	return c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Allgather(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T]())
	})
}

// Allgatherv is Gatherv with the result for everybody. All give the same counts.
func Allgatherv[T Type](c *Comm, send, recv []T, counts, displs []int) error {
	return c.failed("Allgatherv", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Allgatherv(s, datatype.Bytes(send), datatype.Bytes(recv), counts, displs, datatype.KindOf[T]())
	}))
}

// Alltoall sends block r of send to rank r, where it becomes the block of the
// sender's rank in recv. All blocks have one length.
func Alltoall[T Type](c *Comm, send, recv []T) error {
	return c.failed("Alltoall", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Alltoall(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T]())
	}))
}

// Alltoallv is Alltoall of blocks of any length. Counts and displacements are by
// rank, in elements; without displacements blocks follow each other. In place
// means that send and scounts are nil.
func Alltoallv[T Type](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return c.failed("Alltoallv", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Alltoallv(s, datatype.Bytes(send), scounts, sdispls, datatype.Bytes(recv), rcounts, rdispls, datatype.KindOf[T]())
	}))
}
