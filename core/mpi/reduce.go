package mpi

import (
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Reduce combines everybody's send, item by item, into the root's recv, which
// matters at the root only. There send may be InPlace.
func (c *Comm) Reduce(send, recv Buffer, op Op, root int) error {
	return collective.ReduceItems(c.in(), proc.Buffer(send), proc.Buffer(recv), op, root)
}

// Allreduce is Reduce with the result for everybody, the same to the last bit.
// send may be InPlace, here and in what follows.
func (c *Comm) Allreduce(send, recv Buffer, op Op) error {
	return collective.AllreduceItems(c.in(), proc.Buffer(send), proc.Buffer(recv), op)
}

// ReduceScatter combines everybody's send and gives rank r the next counts[r]
// items of the result. All give the same counts. In place, recv is as long as all
// of the result and the caller's part comes to its start.
func (c *Comm) ReduceScatter(send, recv Buffer, counts []int, op Op) error {
	return collective.ReduceScatterItems(c.in(), proc.Buffer(send), proc.Buffer(recv), counts, op)
}

// ReduceScatterBlock is ReduceScatter with parts that are all as long as recv.
func (c *Comm) ReduceScatterBlock(send, recv Buffer, op Op) error {
	return collective.ReduceScatterBlockItems(c.in(), proc.Buffer(send), proc.Buffer(recv), op)
}

// Scan combines the send of all ranks up to the caller's into its recv.
func (c *Comm) Scan(send, recv Buffer, op Op) error {
	return collective.ScanItems(c.in(), proc.Buffer(send), proc.Buffer(recv), op)
}

// Exscan is Scan without the caller's own send. Rank 0's recv is left alone.
func (c *Comm) Exscan(send, recv Buffer, op Op) error {
	return collective.ExscanItems(c.in(), proc.Buffer(send), proc.Buffer(recv), op)
}

// Reduce combines everybody's send, element by element, into the root's recv,
// which matters at the root only.
func Reduce[T Type](c *Comm, send, recv []T, op Op, root int) error {
	return collective.Reduce(c.in(), send, recv, op, root)
}

// Allreduce is Reduce with the result for everybody, the same to the last bit.
func Allreduce[T Type](c *Comm, send, recv []T, op Op) error {
	return collective.Allreduce(c.in(), send, recv, op)
}

// ReduceScatter combines everybody's send and gives rank r the next counts[r]
// elements of the result. All give the same counts. In place, recv is as long as
// all of the result and the caller's part comes to its start.
func ReduceScatter[T Type](c *Comm, send, recv []T, counts []int, op Op) error {
	return collective.ReduceScatter(c.in(), send, recv, counts, op)
}

// ReduceScatterBlock is ReduceScatter with parts that are all as long as recv.
func ReduceScatterBlock[T Type](c *Comm, send, recv []T, op Op) error {
	return collective.ReduceScatterBlock(c.in(), send, recv, op)
}

// Scan combines the send of all ranks up to the caller's into its recv.
func Scan[T Type](c *Comm, send, recv []T, op Op) error {
	return collective.Scan(c.in(), send, recv, op)
}

// Exscan is Scan without the caller's own send. Rank 0's recv is left alone.
func Exscan[T Type](c *Comm, send, recv []T, op Op) error {
	return collective.Exscan(c.in(), send, recv, op)
}
