package mpi

import "github.com/openimpi/impi/core/datatype"

// Reduce combines everybody's send, element by element, into the root's recv,
// which matters at the root only.
func Reduce[T Type](c *Comm, send, recv []T, op Op, root int) error {
	x, err := c.begin()
	if err == nil {
		err = x.run(c.collectivePlanner().Reduce(&x.sched, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op, root))
	}
	return failed("Reduce", err)
}

// Allreduce is Reduce with the result for everybody, the same to the last bit.
func Allreduce[T Type](c *Comm, send, recv []T, op Op) error {
	return failed("Allreduce", allreduce(c, send, recv, op))
}

func allreduce[T Type](c *Comm, send, recv []T, op Op) error {
	x, err := c.begin()
	if err != nil {
		return err
	}
	return x.run(c.collectivePlanner().Allreduce(&x.sched, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op))
}

// ReduceScatter combines everybody's send and gives rank r the next counts[r]
// elements of the result. All give the same counts. In place, recv is as long as
// all of the result and the caller's part comes to its start.
func ReduceScatter[T Type](c *Comm, send, recv []T, counts []int, op Op) error {
	x, err := c.begin()
	if err == nil {
		err = x.run(c.collectivePlanner().ReduceScatter(&x.sched, datatype.Bytes(send), datatype.Bytes(recv), counts, datatype.KindOf[T](), op))
	}
	return failed("ReduceScatter", err)
}

// ReduceScatterBlock is ReduceScatter with parts that are all as long as recv.
func ReduceScatterBlock[T Type](c *Comm, send, recv []T, op Op) error {
	x, err := c.begin()
	if err == nil {
		err = x.run(c.collectivePlanner().ReduceScatterBlock(&x.sched, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op))
	}
	return failed("ReduceScatterBlock", err)
}

// Scan combines the send of all ranks up to the caller's into its recv.
func Scan[T Type](c *Comm, send, recv []T, op Op) error {
	x, err := c.begin()
	if err == nil {
		err = x.run(c.collectivePlanner().Scan(&x.sched, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op))
	}
	return failed("Scan", err)
}

// Exscan is Scan without the caller's own send. Rank 0's recv is left alone.
func Exscan[T Type](c *Comm, send, recv []T, op Op) error {
	x, err := c.begin()
	if err == nil {
		err = x.run(c.collectivePlanner().Exscan(&x.sched, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op))
	}
	return failed("Exscan", err)
}
