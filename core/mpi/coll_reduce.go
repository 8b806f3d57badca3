package mpi

import "github.com/openimpi/impi/core/datatype"

// Reduce combines everybody's send, element by element, into the root's recv,
// which matters at the root only.
func Reduce[T Type](c *Comm, send, recv []T, op Op, root int) error {
	return c.failed("Reduce", c.call(&call{what: reduce, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, root: root, kind: datatype.KindOf[T]()}))
}

// Allreduce is Reduce with the result for everybody, the same to the last bit.
func Allreduce[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("Allreduce", c.call(&call{what: allreduceAll, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()}))
}

// ReduceScatter combines everybody's send and gives rank r the next counts[r]
// elements of the result. All give the same counts. In place, recv is as long as
// all of the result and the caller's part comes to its start.
func ReduceScatter[T Type](c *Comm, send, recv []T, counts []int, op Op) error {
	return c.failed("ReduceScatter", c.call(&call{what: reduceScatter, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, op: op, kind: datatype.KindOf[T]()}))
}

// ReduceScatterBlock is ReduceScatter with parts that are all as long as recv.
func ReduceScatterBlock[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("ReduceScatterBlock", c.call(&call{what: reduceScatterBlock, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()}))
}

// Scan combines the send of all ranks up to the caller's into its recv.
func Scan[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("Scan", c.call(&call{what: scan, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()}))
}

// Exscan is Scan without the caller's own send. Rank 0's recv is left alone.
func Exscan[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("Exscan", c.call(&call{what: exscan, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()}))
}

// allreduce is Allreduce for constructors.
func allreduce[T Type](c *Comm, send, recv []T, op Op) error {
	return c.call(&call{what: allreduceAll, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()})
}
