package collective

import "github.com/openimpi/impi/internal/engine/proc"

// The collective operations over Buffers of any datatype: what the free functions
// of the same names do. A buffer that has a block for each rank is given with all
// of its items, and its blocks are of equal length. Where a root is to be given,
// an intercommunicator takes Root and ProcNull as well.

func BcastItems(c *proc.Comm, b proc.Buffer, root int) error {
	s := stage(c, OpBcast)
	s.bcast(b, root)
	return c.Failed("Bcast", s.run())
}

func GatherItems(c *proc.Comm, send, recv proc.Buffer, root int) error {
	s := stage(c, gather)
	s.gather(send, recv, root)
	return c.Failed("Gather", s.run())
}

func GathervItems(c *proc.Comm, send, recv proc.Buffer, counts, displs []int, root int) error {
	s := stage(c, gatherv)
	s.gatherv(send, recv, counts, displs, root)
	return c.Failed("Gatherv", s.run())
}

func ScatterItems(c *proc.Comm, send, recv proc.Buffer, root int) error {
	s := stage(c, scatter)
	s.scatter(send, recv, root)
	return c.Failed("Scatter", s.run())
}

func ScattervItems(c *proc.Comm, send proc.Buffer, counts, displs []int, recv proc.Buffer, root int) error {
	s := stage(c, scatterv)
	s.scatterv(send, counts, displs, recv, root)
	return c.Failed("Scatterv", s.run())
}

func AllgatherItems(c *proc.Comm, send, recv proc.Buffer) error {
	s := stage(c, allgatherAll)
	s.allgather(send, recv)
	return c.Failed("Allgather", s.run())
}

func AllgathervItems(c *proc.Comm, send, recv proc.Buffer, counts, displs []int) error {
	s := stage(c, allgatherv)
	s.allgatherv(send, recv, counts, displs)
	return c.Failed("Allgatherv", s.run())
}

func AlltoallItems(c *proc.Comm, send, recv proc.Buffer) error {
	s := stage(c, alltoall)
	s.alltoall(send, recv)
	return c.Failed("Alltoall", s.run())
}

func AlltoallvItems(c *proc.Comm, send proc.Buffer, scounts, sdispls []int, recv proc.Buffer, rcounts, rdispls []int) error {
	s := stage(c, alltoallv)
	s.alltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	return c.Failed("Alltoallv", s.run())
}

func Alltoallw(c *proc.Comm, send, recv []proc.Buffer) error {
	s := stage(c, alltoallw)
	s.alltoallw(send, recv)
	return c.Failed("Alltoallw", s.run())
}
