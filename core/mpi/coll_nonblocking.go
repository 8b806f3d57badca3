package mpi

import "github.com/openimpi/impi/core/datatype"

// The non-blocking collective operations. All members begin them, and call the
// blocking ones, in one order; a non-blocking operation is not one with a blocking
// one. Any number may be under way; buffers, counts and displacements must stay as
// they are until the request is complete. Such a request cannot be cancelled or
// freed before.

// Ibarrier begins a Barrier: the request is complete when all members have begun theirs.
func Ibarrier(c *Comm) (Request, error) {
	q, err := c.startCall("Ibarrier", &call{what: barrier})
	return q, c.failed("Ibarrier", err)
}

// Ibcast begins a Bcast.
func Ibcast[T Type](c *Comm, buf []T, root int) (Request, error) {
	q, err := c.startCall("Ibcast", &call{what: bcast, send: datatype.Bytes(buf), root: root, kind: datatype.KindOf[T]()})
	return q, c.failed("Ibcast", err)
}

// Igather begins a Gather.
func Igather[T Type](c *Comm, send, recv []T, root int) (Request, error) {
	q, err := c.startCall("Igather", &call{what: gather, send: datatype.Bytes(send), recv: datatype.Bytes(recv), root: root, kind: datatype.KindOf[T]()})
	return q, c.failed("Igather", err)
}

// Igatherv begins a Gatherv.
func Igatherv[T Type](c *Comm, send, recv []T, counts, displs []int, root int) (Request, error) {
	q, err := c.startCall("Igatherv", &call{what: gatherv, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, root: root, kind: datatype.KindOf[T]()})
	return q, c.failed("Igatherv", err)
}

// Iscatter begins a Scatter.
func Iscatter[T Type](c *Comm, send, recv []T, root int) (Request, error) {
	q, err := c.startCall("Iscatter", &call{what: scatter, send: datatype.Bytes(send), recv: datatype.Bytes(recv), root: root, kind: datatype.KindOf[T]()})
	return q, c.failed("Iscatter", err)
}

// Iscatterv begins a Scatterv.
func Iscatterv[T Type](c *Comm, send []T, counts, displs []int, recv []T, root int) (Request, error) {
	q, err := c.startCall("Iscatterv", &call{what: scatterv, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, root: root, kind: datatype.KindOf[T]()})
	return q, c.failed("Iscatterv", err)
}

// Iallgather begins an Allgather.
func Iallgather[T Type](c *Comm, send, recv []T) (Request, error) {
	q, err := c.startCall("Iallgather", &call{what: allgatherAll, send: datatype.Bytes(send), recv: datatype.Bytes(recv), kind: datatype.KindOf[T]()})
	return q, c.failed("Iallgather", err)
}

// Iallgatherv begins an Allgatherv.
func Iallgatherv[T Type](c *Comm, send, recv []T, counts, displs []int) (Request, error) {
	q, err := c.startCall("Iallgatherv", &call{what: allgatherv, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, kind: datatype.KindOf[T]()})
	return q, c.failed("Iallgatherv", err)
}

// Ialltoall begins an Alltoall.
func Ialltoall[T Type](c *Comm, send, recv []T) (Request, error) {
	q, err := c.startCall("Ialltoall", &call{what: alltoall, send: datatype.Bytes(send), recv: datatype.Bytes(recv), kind: datatype.KindOf[T]()})
	return q, c.failed("Ialltoall", err)
}

// Ialltoallv begins an Alltoallv.
func Ialltoallv[T Type](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) (Request, error) {
	q, err := c.startCall("Ialltoallv", &call{what: alltoallv, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: scounts, displs: sdispls, rcounts: rcounts, rdispls: rdispls, kind: datatype.KindOf[T]()})
	return q, c.failed("Ialltoallv", err)
}

// Ireduce begins a Reduce.
func Ireduce[T Type](c *Comm, send, recv []T, op Op, root int) (Request, error) {
	q, err := c.startCall("Ireduce", &call{what: reduce, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, root: root, kind: datatype.KindOf[T]()})
	return q, c.failed("Ireduce", err)
}

// Iallreduce begins an Allreduce.
func Iallreduce[T Type](c *Comm, send, recv []T, op Op) (Request, error) {
	q, err := c.startCall("Iallreduce", &call{what: allreduceAll, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()})
	return q, c.failed("Iallreduce", err)
}

// IreduceScatter begins a ReduceScatter.
func IreduceScatter[T Type](c *Comm, send, recv []T, counts []int, op Op) (Request, error) {
	q, err := c.startCall("IreduceScatter", &call{what: reduceScatter, send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, op: op, kind: datatype.KindOf[T]()})
	return q, c.failed("IreduceScatter", err)
}

// IreduceScatterBlock begins a ReduceScatterBlock.
func IreduceScatterBlock[T Type](c *Comm, send, recv []T, op Op) (Request, error) {
	q, err := c.startCall("IreduceScatterBlock", &call{what: reduceScatterBlock, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()})
	return q, c.failed("IreduceScatterBlock", err)
}

// Iscan begins a Scan.
func Iscan[T Type](c *Comm, send, recv []T, op Op) (Request, error) {
	q, err := c.startCall("Iscan", &call{what: scan, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()})
	return q, c.failed("Iscan", err)
}

// Iexscan begins an Exscan.
func Iexscan[T Type](c *Comm, send, recv []T, op Op) (Request, error) {
	q, err := c.startCall("Iexscan", &call{what: exscan, send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, kind: datatype.KindOf[T]()})
	return q, c.failed("Iexscan", err)
}
