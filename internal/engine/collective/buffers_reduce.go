package collective

import "github.com/openimpi/impi/internal/engine/proc"

func ReduceItems(c *proc.Comm, send, recv proc.Buffer, op Op, root int) error {
	s := stage(c, reduce)
	s.reduce(send, recv, op, root)
	return c.Failed("Reduce", s.run())
}

func AllreduceItems(c *proc.Comm, send, recv proc.Buffer, op Op) error {
	s := stage(c, allreduceAll)
	s.combine(send, recv, op)
	return c.Failed("Allreduce", s.run())
}

func ReduceScatterItems(c *proc.Comm, send, recv proc.Buffer, counts []int, op Op) error {
	s := stage(c, reduceScatter)
	s.reduceScatter(send, recv, counts, op)
	return c.Failed("ReduceScatter", s.run())
}

func ReduceScatterBlockItems(c *proc.Comm, send, recv proc.Buffer, op Op) error {
	s := stage(c, reduceScatterBlock)
	s.combine(send, recv, op)
	return c.Failed("ReduceScatterBlock", s.run())
}

func ScanItems(c *proc.Comm, send, recv proc.Buffer, op Op) error {
	s := stage(c, scan)
	s.combine(send, recv, op)
	return c.Failed("Scan", s.run())
}

func ExscanItems(c *proc.Comm, send, recv proc.Buffer, op Op) error {
	s := stage(c, exscan)
	s.combine(send, recv, op)
	return c.Failed("Exscan", s.run())
}
