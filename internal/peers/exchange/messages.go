package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

var errEarly = errors.New("a synchronous send was complete without a receive")

func ring(a []int) error {
	value, next, before := 0, (rank+1)%size, (rank+size-1)%size
	for round := range a[0] {
		token := []int32{int32(value), int32(round)}
		if rank == 0 {
			if err := mpi.Send(world, token, next, 7); err != nil {
				return err
			}
			if _, err := mpi.Recv(world, token, before, 7); err != nil {
				return err
			}
			if int(token[0]) != value+size-1 || int(token[1]) != round {
				return fmt.Errorf("%w: round %d: the token is %v", errContents, round, token)
			}
			value = int(token[0])
			continue
		}
		if _, err := mpi.Recv(world, token, before, 7); err != nil {
			return err
		}
		token[0]++
		if err := mpi.Send(world, token, next, 7); err != nil {
			return err
		}
	}
	return nil
}

// pingpong: two ranks, the datalen, the longest message. Sizes at the edges of
// packets.
func pingpong(a []int) error {
	if rank != a[0] && rank != a[1] {
		return nil
	}
	peer := a[0] + a[1] - rank
	sizes := []int{0, 1, 2, 7, 8, 100, 1023, 1024, 4096, 65536, 1 << 20, 4<<20 + 3, 16 << 20, 64 << 20}
	for k := 1; k <= 5; k++ {
		sizes = append(sizes, k*a[2]-1, k*a[2], k*a[2]+1)
	}
	out, in := make([]byte, a[3]), make([]byte, a[3])
	for i, n := range sizes {
		if n > a[3] {
			continue
		}
		if err := exchange(out[:n], in[:n], i, peer, rank == a[0]); err != nil {
			return err
		}
	}
	return nil
}

func exchange(out, in []byte, i, peer int, first bool) error {
	if !first {
		if err := receive(in, len(in), i, peer, i, peer, i); err != nil {
			return err
		}
		writeLetters(out, i+1)
		return mpi.Send(world, out, peer, i)
	}
	writeLetters(out, i)
	if err := mpi.Send(world, out, peer, i); err != nil {
		return err
	}
	return receive(in, len(in), i+1, peer, i, peer, i)
}

// ssend: sender, receiver, tag, length. The send must not be complete before the
// receive is there, and must be soon after.
func ssend(a []int) error {
	b, from, to, tag := make([]byte, a[3]), a[0], a[1], a[2]
	switch rank {
	case from:
		return ssendTo(b, to, tag)
	case to:
		note := make([]byte, 1)
		if _, err := mpi.Recv(world, note, from, tag+1); err != nil {
			return err
		}
		if err := mpi.Send(world, note, from, tag+2); err != nil {
			return err
		}
		if _, err := mpi.Recv(world, note, from, tag+3); err != nil {
			return err
		}
		return errors.Join(receive(b, len(b), tag, from, tag, from, tag), receive(b, len(b), tag, from, tag, from, tag))
	}
	return nil
}

func ssendTo(b []byte, to, tag int) error {
	note := make([]byte, 1)
	writeLetters(b, tag)
	r, err := world.Issend(mpi.Of(b), to, tag)
	if err != nil {
		return err
	}
	if err := mpi.Send(world, note, to, tag+1); err != nil {
		return err
	}
	if _, err := mpi.Recv(world, note, to, tag+2); err != nil {
		return err
	}
	if done, _, err := r.Test(); done || err != nil {
		return errors.Join(errEarly, err)
	}
	if err := mpi.Send(world, note, to, tag+3); err != nil {
		return err
	}
	if _, err := r.Wait(); err != nil {
		return err
	}
	return mpi.Ssend(world, b, to, tag)
}

// lostAck: sender, receiver, tag. Whether a synchronous send is complete after its
// acknowledgement has come: it was sent before 100 round trips of other messages.
func lostAck(a []int) error {
	if rank != a[0] && rank != a[1] {
		return nil
	}
	note, peer := make([]byte, 1), a[0]+a[1]-rank
	var r mpi.Request
	var err error
	if rank == a[0] {
		r, err = world.Issend(mpi.Of(make([]byte, 1)), peer, a[2])
	} else {
		_, err = mpi.Recv(world, note, peer, a[2])
	}
	for range 100 {
		if err == nil && rank == a[1] {
			err = mpi.Send(world, note, peer, 71)
		}
		if err == nil {
			_, err = mpi.Recv(world, note, peer, 71)
		}
		if err == nil && rank == a[0] {
			err = mpi.Send(world, note, peer, 71)
		}
	}
	if err != nil || rank != a[0] {
		return err
	}
	done, _, err := r.Test()
	if done {
		fmt.Printf("exchange: tag %d: complete\n", a[2])
		return err
	}
	fmt.Printf("exchange: tag %d: never acknowledged\n", a[2])
	_, err = r.Wait()
	return err
}

// flood: sender, receiver, messages. None is received before the last is there.
func flood(a []int) error {
	from, to, n, b := a[0], a[1], a[2], make([]byte, 64)
	switch rank {
	case from:
		for i := range n {
			writeLetters(b[:i%64], i)
			if err := mpi.Send(world, b[:i%64], to, 11); err != nil {
				return err
			}
		}
		if err := mpi.Send(world, b[:0], to, 12); err != nil {
			return err
		}
		_, err := mpi.Recv(world, b[:0], to, 13)
		return err
	case to:
		if _, err := mpi.Recv(world, b[:0], from, 12); err != nil {
			return err
		}
		for i := range n {
			if err := receive(b, i%64, i, from, 11, from, 11); err != nil {
				return err
			}
		}
		return mpi.Send(world, b[:0], from, 13)
	}
	return nil
}

// hoard: sender, receiver, messages of 200 KiB. Both are of ours. None is received before the
// last has been begun, and the receiver's memory is not to grow with them.
func hoard(a []int) error {
	const length, most = 200 << 10, 100 << 20
	from, to, n, b := a[0], a[1], a[2], make([]byte, length)
	switch rank {
	case from:
		writeLetters(b, n)
		reqs := make([]mpi.Request, n)
		for i := range reqs {
			r, err := mpi.Isend(world, b, to, 14)
			if err != nil {
				return err
			}
			reqs[i] = r
		}
		if err := mpi.Send(world, b[:0], to, 15); err != nil {
			return err
		}
		return mpi.Waitall(reqs, nil)
	case to:
		before, err := resident()
		if err != nil {
			return err
		}
		if _, err := mpi.Recv(world, b[:0], from, 15); err != nil {
			return err
		}
		after, err := resident()
		if err != nil {
			return err
		}
		if after-before > most {
			return fmt.Errorf("%d MiB were kept of %d MiB that nobody has asked for", (after-before)>>20, n*length>>20)
		}
		for range n {
			if err := receive(b, length, n, from, 14, from, 14); err != nil {
				return err
			}
		}
	}
	return nil
}

// resident is how much memory this process has, in bytes.
func resident() (int, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, err
	}
	return pages * os.Getpagesize(), nil
}

// pairs: messages per pair, datalen. All pairs at once, short and long ones.
func pairs(a []int) error {
	d := a[1]
	length := func(from, to, k int) int {
		return []int{5 + from, d + to, 2*d + 7}[k%3]
	}
	var reqs []mpi.Request
	var check []func() error
	for k := range a[0] {
		for peer := range size {
			if peer == rank {
				continue
			}
			in, out := make([]byte, length(peer, rank, k)), make([]byte, length(rank, peer, k))
			writeLetters(out, rank*7+peer+k)
			r, err := mpi.Irecv(world, in, peer, k)
			if err != nil {
				return err
			}
			s, err := mpi.Isend(world, out, peer, k)
			if err != nil {
				return err
			}
			reqs = append(reqs, r, s)
			check = append(check, func() error { return readLetters(in, peer*7+rank+k) })
		}
	}
	if err := mpi.Waitall(reqs, nil); err != nil {
		return err
	}
	for _, c := range check {
		if err := c(); err != nil {
			return err
		}
	}
	return nil
}

// pump: two ranks. They talk without end; somebody is killed meanwhile.
func pump(a []int) error {
	b := make([]byte, 1000)
	if rank != a[0] && rank != a[1] {
		_, err := mpi.Recv(world, b[:1], a[0], 1) // for ever
		return err
	}
	peer := a[0] + a[1] - rank
	for i := 0; ; i++ {
		if rank == a[0] {
			if err := mpi.Send(world, b, peer, 41); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(world, b, peer, 41); err != nil {
			return err
		}
		if rank == a[1] {
			if err := mpi.Send(world, b, peer, 41); err != nil {
				return err
			}
		}
		if i == 20 {
			fmt.Printf("exchange: pump: rank %d runs\n", rank)
		}
	}
}
