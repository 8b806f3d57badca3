package mpi

import (
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
)

// Reduce combines everybody's send, element by element, into the root's recv,
// which matters at the root only.
func Reduce[T Type](c *Comm, send, recv []T, op Op, root int) error {
	return c.failed("Reduce", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Reduce(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op, root)
	}))
}

// Allreduce is Reduce with the result for everybody, the same to the last bit.
func Allreduce[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("Allreduce", allreduce(c, send, recv, op))
}

func allreduce[T Type](c *Comm, send, recv []T, op Op) error {
	return c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Allreduce(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op)
	})
}

// ReduceScatter combines everybody's send and gives rank r the next counts[r]
// elements of the result. All give the same counts. In place, recv is as long as
// all of the result and the caller's part comes to its start.
func ReduceScatter[T Type](c *Comm, send, recv []T, counts []int, op Op) error {
	return c.failed("ReduceScatter", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.ReduceScatter(s, datatype.Bytes(send), datatype.Bytes(recv), counts, datatype.KindOf[T](), op)
	}))
}

// ReduceScatterBlock is ReduceScatter with parts that are all as long as recv.
func ReduceScatterBlock[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("ReduceScatterBlock", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.ReduceScatterBlock(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op)
	}))
}

// Scan combines the send of all ranks up to the caller's into its recv.
func Scan[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("Scan", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Scan(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op)
	}))
}

// Exscan is Scan without the caller's own send. Rank 0's recv is left alone.
func Exscan[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("Exscan", c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Exscan(s, datatype.Bytes(send), datatype.Bytes(recv), datatype.KindOf[T](), op)
	}))
}
