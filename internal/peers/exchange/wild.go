package main

import (
	"github.com/openimpi/impi/core/mpi"
)

// wild: how many receivers, the receivers. All ranks send to each of them in turn, which
// receives from any source; then any tag from one source.
func wild(a []int) {
	for _, way := range []struct {
		take func()
		send func(to int)
	}{{takeAnything, sendThree}, {takeByHalves, sendTwo}} {
		for _, to := range a[1:][:a[0]] {
			if rank == to {
				way.take()
			} else {
				way.send(to)
			}
			check(mpi.Barrier(world))
		}
	}
}

func sendThree(to int) {
	b := make([]byte, 100+rank)
	for k := range 3 {
		writePattern(b, rank+k)
		check(mpi.Send(world, b, to, 100*(rank+1)+k))
	}
}

func takeAnything() {
	b, seen := make([]byte, 300), make([]int, size)
	for range 3 * (size - 1) {
		st := must(mpi.Recv(world, b, mpi.AnySource, mpi.AnyTag))
		from := st.Source
		if from < 0 || from >= size || st.Bytes() != int64(100+from) || st.Tag != 100*(from+1)+seen[from] {
			fail("%d bytes from %d with tag %d, of whom there were %v", st.Bytes(), from, st.Tag, seen)
		}
		checkPattern(b[:100+from], from+seen[from])
		seen[from]++
	}
}

func sendTwo(to int) {
	b := make([]byte, 10)
	writePattern(b, rank)
	check(mpi.Send(world, b, to, 5))
	check(mpi.Send(world, b, to, 60+rank))
}

func takeByHalves() {
	b := make([]byte, 300)
	for i := range size {
		if i != rank {
			receive(b, 10, i, i, 5, i, 5)
		}
	}
	for i := range size {
		if i != rank {
			receive(b, 10, i, i, mpi.AnyTag, i, 60+i)
		}
	}
}
