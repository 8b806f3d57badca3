package collective

import "github.com/openimpi/impi/internal/engine/proc"

// The operations of neighbours over Buffers of any datatype.

func NeighborAllgatherItems(c *proc.Comm, send, recv proc.Buffer) error {
	s := stage(c, neighborAllgather)
	s.neighborAllgather(send, recv)
	return c.Failed("NeighborAllgather", s.run())
}

func NeighborAllgathervItems(c *proc.Comm, send, recv proc.Buffer, counts, displs []int) error {
	s := stage(c, neighborAllgatherv)
	s.neighborAllgatherv(send, recv, counts, displs)
	return c.Failed("NeighborAllgatherv", s.run())
}

func NeighborAlltoallItems(c *proc.Comm, send, recv proc.Buffer) error {
	s := stage(c, neighborAlltoall)
	s.neighborAllgather(send, recv)
	return c.Failed("NeighborAlltoall", s.run())
}

func NeighborAlltoallvItems(c *proc.Comm, send proc.Buffer, scounts, sdispls []int, recv proc.Buffer, rcounts, rdispls []int) error {
	s := stage(c, neighborAlltoallv)
	s.neighborAlltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	return c.Failed("NeighborAlltoallv", s.run())
}

func NeighborAlltoallw(c *proc.Comm, send, recv []proc.Buffer) error {
	s := stage(c, neighborAlltoallw)
	s.neighborAlltoallw(send, recv)
	return c.Failed("NeighborAlltoallw", s.run())
}
