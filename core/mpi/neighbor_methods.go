package mpi

// The operations of neighbours over Buffers of any datatype.

// NeighborAllgather sends send to all neighbours and puts what comes from them into recv,
// which has a block for each.
func (c *Comm) NeighborAllgather(send, recv Buffer) error {
	s := c.stage(neighborAllgather)
	s.neighborAllgather(send, recv)
	return c.failed("NeighborAllgather", s.run())
}

// NeighborAllgatherv is NeighborAllgather of blocks of any length: counts[i] items of
// neighbour i go to item displs[i] of recv; without displs the blocks follow each
// other.
func (c *Comm) NeighborAllgatherv(send, recv Buffer, counts, displs []int) error {
	s := c.stage(neighborAllgatherv)
	s.neighborAllgatherv(send, recv, counts, displs)
	return c.failed("NeighborAllgatherv", s.run())
}

// NeighborAlltoall sends block i of send to neighbour i, and puts what comes from
// neighbour i into block i of recv.
func (c *Comm) NeighborAlltoall(send, recv Buffer) error {
	s := c.stage(neighborAlltoall)
	s.neighborAllgather(send, recv)
	return c.failed("NeighborAlltoall", s.run())
}

// NeighborAlltoallv is NeighborAlltoall of blocks of any length. Counts and
// displacements are by neighbour, in items; without displacements blocks follow
// each other.
func (c *Comm) NeighborAlltoallv(send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int) error {
	s := c.stage(neighborAlltoallv)
	s.neighborAlltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	return c.failed("NeighborAlltoallv", s.run())
}

// NeighborAlltoallw is NeighborAlltoall of blocks that each have their own place and
// datatype, by neighbour.
func (c *Comm) NeighborAlltoallw(send, recv []Buffer) error {
	s := c.stage(neighborAlltoallw)
	s.neighborAlltoallw(send, recv)
	return c.failed("NeighborAlltoallw", s.run())
}
