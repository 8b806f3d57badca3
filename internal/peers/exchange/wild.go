package main

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

// wild: how many receivers, the receivers. Everybody sends to each of them in turn,
// which does not say from whom it wants what; then any tag of a source.
func wild(a []int) error {
	for _, to := range a[1:][:a[0]] {
		var err error
		if rank == to {
			err = takeAnything()
		} else {
			err = sendThree(to)
		}
		if err == nil {
			err = mpi.Barrier(world)
		}
		if err != nil {
			return err
		}
	}
	for _, to := range a[1:][:a[0]] {
		var err error
		if rank == to {
			err = takeByHalves()
		} else {
			err = sendTwo(to)
		}
		if err == nil {
			err = mpi.Barrier(world)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sendThree(to int) error {
	b := make([]byte, 100+rank)
	for k := range 3 {
		writeLetters(b, rank+k)
		if err := mpi.Send(world, b, to, 100*(rank+1)+k); err != nil {
			return err
		}
	}
	return nil
}

func takeAnything() error {
	b, seen := make([]byte, 300), make([]int, size)
	for range 3 * (size - 1) {
		st, err := mpi.Recv(world, b, mpi.AnySource, mpi.AnyTag)
		if err != nil {
			return err
		}
		from := st.Source
		if from < 0 || from >= size || st.Bytes() != int64(100+from) || st.Tag != 100*(from+1)+seen[from] {
			return fmt.Errorf("%w: %d bytes from %d with tag %d, of whom there were %v", errContents, st.Bytes(), from, st.Tag, seen)
		}
		if err := readLetters(b[:100+from], from+seen[from]); err != nil {
			return err
		}
		seen[from]++
	}
	return nil
}

func sendTwo(to int) error {
	b := make([]byte, 10)
	writeLetters(b, rank)
	if err := mpi.Send(world, b, to, 5); err != nil {
		return err
	}
	return mpi.Send(world, b, to, 60+rank)
}

func takeByHalves() error {
	b := make([]byte, 300)
	for i := range size {
		if i != rank {
			if err := receive(b, 10, i, i, 5, i, 5); err != nil {
				return err
			}
		}
	}
	for i := range size {
		if i != rank {
			if err := receive(b, 10, i, i, mpi.AnyTag, i, 60+i); err != nil {
				return err
			}
		}
	}
	return nil
}
