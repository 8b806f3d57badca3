package mpi

// The collective operations over Buffers of any datatype: what the free functions
// of the same names do. A buffer that has a block for each rank is given with all
// of its items, and its blocks are of equal length. Where a root is to be given,
// an intercommunicator takes Root and ProcNull as well.

// Barrier is the function Barrier.
func (c *Comm) Barrier() error { return c.failed("Barrier", c.call(&call{what: barrier})) }

// Bcast sends the root's items to everybody's b.
func (c *Comm) Bcast(b Buffer, root int) error {
	s := c.stage(bcast)
	s.bcast(b, root)
	return c.failed("Bcast", s.run())
}

// Gather puts everybody's send into the root's recv, which has a block for each
// rank: it matters at the root only, where send may be InPlace.
func (c *Comm) Gather(send, recv Buffer, root int) error {
	s := c.stage(gather)
	s.gather(send, recv, root)
	return c.failed("Gather", s.run())
}

// Gatherv is Gather of blocks of any length: counts[r] items of rank r go to item
// displs[r] of recv; without displs the blocks follow each other. recv, counts
// and displs matter at the root only.
func (c *Comm) Gatherv(send, recv Buffer, counts, displs []int, root int) error {
	s := c.stage(gatherv)
	s.gatherv(send, recv, counts, displs, root)
	return c.failed("Gatherv", s.run())
}

// Scatter gives each rank its block of the root's send, which matters at the root
// only, where recv may be InPlace.
func (c *Comm) Scatter(send, recv Buffer, root int) error {
	s := c.stage(scatter)
	s.scatter(send, recv, root)
	return c.failed("Scatter", s.run())
}

// Scatterv is Scatter of blocks of any length: rank r gets counts[r] items from
// item displs[r] of send on; without displs the blocks follow each other. send,
// counts and displs matter at the root only.
func (c *Comm) Scatterv(send Buffer, counts, displs []int, recv Buffer, root int) error {
	s := c.stage(scatterv)
	s.scatterv(send, counts, displs, recv, root)
	return c.failed("Scatterv", s.run())
}

// Allgather is Gather with the result for everybody. send may be InPlace.
func (c *Comm) Allgather(send, recv Buffer) error {
	s := c.stage(allgatherAll)
	s.allgather(send, recv)
	return c.failed("Allgather", s.run())
}

// Allgatherv is Gatherv with the result for everybody. All give the same counts.
// send may be InPlace.
func (c *Comm) Allgatherv(send, recv Buffer, counts, displs []int) error {
	s := c.stage(allgatherv)
	s.allgatherv(send, recv, counts, displs)
	return c.failed("Allgatherv", s.run())
}

// Alltoall sends block r of send to rank r, where it becomes the block of the
// sender's rank in recv. send may be InPlace.
func (c *Comm) Alltoall(send, recv Buffer) error {
	s := c.stage(alltoall)
	s.alltoall(send, recv)
	return c.failed("Alltoall", s.run())
}

// Alltoallv is Alltoall of blocks of any length. Counts and displacements are by
// rank, in items; without displacements blocks follow each other. send may be
// InPlace.
func (c *Comm) Alltoallv(send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int) error {
	s := c.stage(alltoallv)
	s.alltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	return c.failed("Alltoallv", s.run())
}

// Alltoallw is Alltoall of blocks that each have their own place and datatype, by
// rank. Without send it is in place.
func (c *Comm) Alltoallw(send, recv []Buffer) error {
	s := c.stage(alltoallw)
	s.alltoallw(send, recv)
	return c.failed("Alltoallw", s.run())
}
