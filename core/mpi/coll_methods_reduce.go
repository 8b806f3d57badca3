package mpi

// Reduce combines everybody's send, item by item, into the root's recv, which
// matters at the root only. There send may be InPlace.
func (c *Comm) Reduce(send, recv Buffer, op Op, root int) error {
	s := c.stage(reduce)
	s.reduce(send, recv, op, root)
	return c.failed("Reduce", s.run())
}

// Allreduce is Reduce with the result for everybody, the same to the last bit.
// send may be InPlace, here and in what follows.
func (c *Comm) Allreduce(send, recv Buffer, op Op) error {
	s := c.stage(allreduceAll)
	s.combine(send, recv, op)
	return c.failed("Allreduce", s.run())
}

// ReduceScatter combines everybody's send and gives rank r the next counts[r]
// items of the result. All give the same counts. In place, recv is as long as all
// of the result and the caller's part comes to its start.
func (c *Comm) ReduceScatter(send, recv Buffer, counts []int, op Op) error {
	s := c.stage(reduceScatter)
	s.reduceScatter(send, recv, counts, op)
	return c.failed("ReduceScatter", s.run())
}

// ReduceScatterBlock is ReduceScatter with parts that are all as long as recv.
func (c *Comm) ReduceScatterBlock(send, recv Buffer, op Op) error {
	s := c.stage(reduceScatterBlock)
	s.combine(send, recv, op)
	return c.failed("ReduceScatterBlock", s.run())
}

// Scan combines the send of all ranks up to the caller's into its recv.
func (c *Comm) Scan(send, recv Buffer, op Op) error {
	s := c.stage(scan)
	s.combine(send, recv, op)
	return c.failed("Scan", s.run())
}

// Exscan is Scan without the caller's own send. Rank 0's recv is left alone.
func (c *Comm) Exscan(send, recv Buffer, op Op) error {
	s := c.stage(exscan)
	s.combine(send, recv, op)
	return c.failed("Exscan", s.run())
}
