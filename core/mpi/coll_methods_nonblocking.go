package mpi

// The non-blocking forms. What is to be sent has been taken out of buffers whose
// items are not memory as it stands when the call returns, but that is not to be
// relied on.

// Ibcast begins a Bcast.
func (c *Comm) Ibcast(b Buffer, root int) (Request, error) {
	s := c.stage(bcast)
	s.bcast(b, root)
	return s.start("Ibcast")
}

// Igather begins a Gather.
func (c *Comm) Igather(send, recv Buffer, root int) (Request, error) {
	s := c.stage(gather)
	s.gather(send, recv, root)
	return s.start("Igather")
}

// Igatherv begins a Gatherv.
func (c *Comm) Igatherv(send, recv Buffer, counts, displs []int, root int) (Request, error) {
	s := c.stage(gatherv)
	s.gatherv(send, recv, counts, displs, root)
	return s.start("Igatherv")
}

// Iscatter begins a Scatter.
func (c *Comm) Iscatter(send, recv Buffer, root int) (Request, error) {
	s := c.stage(scatter)
	s.scatter(send, recv, root)
	return s.start("Iscatter")
}

// Iscatterv begins a Scatterv.
func (c *Comm) Iscatterv(send Buffer, counts, displs []int, recv Buffer, root int) (Request, error) {
	s := c.stage(scatterv)
	s.scatterv(send, counts, displs, recv, root)
	return s.start("Iscatterv")
}

// Iallgather begins an Allgather.
func (c *Comm) Iallgather(send, recv Buffer) (Request, error) {
	s := c.stage(allgatherAll)
	s.allgather(send, recv)
	return s.start("Iallgather")
}

// Iallgatherv begins an Allgatherv.
func (c *Comm) Iallgatherv(send, recv Buffer, counts, displs []int) (Request, error) {
	s := c.stage(allgatherv)
	s.allgatherv(send, recv, counts, displs)
	return s.start("Iallgatherv")
}

// Ialltoall begins an Alltoall.
func (c *Comm) Ialltoall(send, recv Buffer) (Request, error) {
	s := c.stage(alltoall)
	s.alltoall(send, recv)
	return s.start("Ialltoall")
}

// Ialltoallv begins an Alltoallv.
func (c *Comm) Ialltoallv(send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int) (Request, error) {
	s := c.stage(alltoallv)
	s.alltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	return s.start("Ialltoallv")
}

// Ialltoallw begins an Alltoallw.
func (c *Comm) Ialltoallw(send, recv []Buffer) (Request, error) {
	s := c.stage(alltoallw)
	s.alltoallw(send, recv)
	return s.start("Ialltoallw")
}

// Ireduce begins a Reduce.
func (c *Comm) Ireduce(send, recv Buffer, op Op, root int) (Request, error) {
	s := c.stage(reduce)
	s.reduce(send, recv, op, root)
	return s.start("Ireduce")
}

// Iallreduce begins an Allreduce.
func (c *Comm) Iallreduce(send, recv Buffer, op Op) (Request, error) {
	s := c.stage(allreduceAll)
	s.combine(send, recv, op)
	return s.start("Iallreduce")
}

// IreduceScatter begins a ReduceScatter.
func (c *Comm) IreduceScatter(send, recv Buffer, counts []int, op Op) (Request, error) {
	s := c.stage(reduceScatter)
	s.reduceScatter(send, recv, counts, op)
	return s.start("IreduceScatter")
}

// IreduceScatterBlock begins a ReduceScatterBlock.
func (c *Comm) IreduceScatterBlock(send, recv Buffer, op Op) (Request, error) {
	s := c.stage(reduceScatterBlock)
	s.combine(send, recv, op)
	return s.start("IreduceScatterBlock")
}

// Iscan begins a Scan.
func (c *Comm) Iscan(send, recv Buffer, op Op) (Request, error) {
	s := c.stage(scan)
	s.combine(send, recv, op)
	return s.start("Iscan")
}

// Iexscan begins an Exscan.
func (c *Comm) Iexscan(send, recv Buffer, op Op) (Request, error) {
	s := c.stage(exscan)
	s.combine(send, recv, op)
	return s.start("Iexscan")
}
