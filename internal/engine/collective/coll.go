package collective

import (
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// The collective operations. All members of the communicator call the same ones
// in the same order, with the same root, operation and amounts. Each call blocks
// until the caller's part is done, which says nothing about the others, but for
// Barrier. Buffers must not overlap.
//
// A nil send buffer means in place (MPI_IN_PLACE): what the caller contributes
// is in its receive buffer, where its result goes.
//
// On an intercommunicator what one group contributes the other gets, and nothing
// is in place. There the root gives Root as the root, the others of its group
// ProcNull, and the members of the other group the root's rank.

// Root is what the root of an operation on an intercommunicator gives as root.
const Root = coll.Root

func Barrier(c *proc.Comm) error {
	return c.Failed("Barrier", Execute(c, &Call{What: OpBarrier}))
}

func Bcast[T proc.Type](c *proc.Comm, buf []T, root int) error {
	return c.Failed("Bcast", Execute(c, &Call{What: OpBcast, Send: datatype.Bytes(buf), Root: root, Kind: datatype.KindOf[T]()}))
}

func Gather[T proc.Type](c *proc.Comm, send, recv []T, root int) error {
	return c.Failed("Gather", Execute(c, &Call{What: gather, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), Root: root, Kind: datatype.KindOf[T]()}))
}

func Gatherv[T proc.Type](c *proc.Comm, send, recv []T, counts, displs []int, root int) error {
	return c.Failed("Gatherv", Execute(c, &Call{What: gatherv, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, Root: root, Kind: datatype.KindOf[T]()}))
}

func Scatter[T proc.Type](c *proc.Comm, send, recv []T, root int) error {
	return c.Failed("Scatter", Execute(c, &Call{What: scatter, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), Root: root, Kind: datatype.KindOf[T]()}))
}

func Scatterv[T proc.Type](c *proc.Comm, send []T, counts, displs []int, recv []T, root int) error {
	return c.Failed("Scatterv", Execute(c, &Call{What: scatterv, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, Root: root, Kind: datatype.KindOf[T]()}))
}

func Allgather[T proc.Type](c *proc.Comm, send, recv []T) error {
	return c.Failed("Allgather", Execute(c, &Call{What: allgatherAll, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), Kind: datatype.KindOf[T]()}))
}

func Allgatherv[T proc.Type](c *proc.Comm, send, recv []T, counts, displs []int) error {
	return c.Failed("Allgatherv", Execute(c, &Call{What: allgatherv, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, Kind: datatype.KindOf[T]()}))
}

func Alltoall[T proc.Type](c *proc.Comm, send, recv []T) error {
	return c.Failed("Alltoall", Execute(c, &Call{What: alltoall, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), Kind: datatype.KindOf[T]()}))
}

func Alltoallv[T proc.Type](c *proc.Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return c.Failed("Alltoallv", Execute(c, &Call{What: alltoallv, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: scounts, displs: sdispls, rcounts: rcounts, rdispls: rdispls, Kind: datatype.KindOf[T]()}))
}
