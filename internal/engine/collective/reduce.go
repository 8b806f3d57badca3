package collective

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

func Reduce[T proc.Type](c *proc.Comm, send, recv []T, op Op, root int) error {
	return c.Failed("Reduce", Execute(c, &Call{What: reduce, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, Root: root, Kind: datatype.KindOf[T]()}))
}

func Allreduce[T proc.Type](c *proc.Comm, send, recv []T, op Op) error {
	return c.Failed("Allreduce", Execute(c, &Call{What: allreduceAll, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, Kind: datatype.KindOf[T]()}))
}

func ReduceScatter[T proc.Type](c *proc.Comm, send, recv []T, counts []int, op Op) error {
	return c.Failed("ReduceScatter", Execute(c, &Call{What: reduceScatter, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, op: op, Kind: datatype.KindOf[T]()}))
}

func ReduceScatterBlock[T proc.Type](c *proc.Comm, send, recv []T, op Op) error {
	return c.Failed("ReduceScatterBlock", Execute(c, &Call{What: reduceScatterBlock, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, Kind: datatype.KindOf[T]()}))
}

func Scan[T proc.Type](c *proc.Comm, send, recv []T, op Op) error {
	return c.Failed("Scan", Execute(c, &Call{What: scan, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, Kind: datatype.KindOf[T]()}))
}

func Exscan[T proc.Type](c *proc.Comm, send, recv []T, op Op) error {
	return c.Failed("Exscan", Execute(c, &Call{What: exscan, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), op: op, Kind: datatype.KindOf[T]()}))
}
