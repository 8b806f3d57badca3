package main

import (
	"fmt"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

// spawn: the bytes of a message, how many ranks spawn, the ranks. Each in turn spawns two procs by
// itself, gets back from each what it has sent, and parts with them. The others wait in a barrier
// meanwhile, as MPIs that cannot spawn must.
func spawn(a []int) {
	for _, by := range a[2:][:a[1]] {
		if rank == by {
			parentOf(a[0])
		}
		check(mpi.Barrier(world))
	}
}

func parentOf(n int) {
	self := must(os.Executable())
	newcomers, _, err := mpi.Self().Spawn(mpi.Command{Path: self, Procs: 2}, 0)
	check(err)
	b := make([]byte, n)
	for i := range 2 {
		writePattern(b, rank+i)
		check(mpi.Send(newcomers, b, i, 7))
	}
	for i := range 2 {
		clear(b)
		st := must(mpi.Recv(newcomers, b, mpi.AnySource, 8+i))
		if st.Source != i || st.Bytes() != int64(n) {
			fail("%d bytes from newcomer %d; want %d from %d", st.Bytes(), st.Source, n, i)
		}
		checkPattern(b, rank+i)
	}
	check(newcomers.Disconnect())
}

func newcomer(parent *mpi.Comm) error {
	st, err := mpi.Probe(parent, 0, 7)
	if err != nil {
		return fmt.Errorf("newcomer: %w", err)
	}
	b := make([]byte, st.Bytes())
	if _, err := mpi.Recv(parent, b, 0, 7); err != nil {
		return fmt.Errorf("newcomer: %w", err)
	}
	if err := mpi.Send(parent, b, 0, 8+parent.Rank()); err != nil {
		return fmt.Errorf("newcomer: %w", err)
	}
	if err := parent.Disconnect(); err != nil {
		return fmt.Errorf("newcomer: %w", err)
	}
	return mpi.Finalize()
}
