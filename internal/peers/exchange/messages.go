package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

var errEarly = errors.New("a synchronous send was complete without a receive")

func ring(a []int) {
	value, next, before := 0, (rank+1)%size, (rank+size-1)%size
	for round := range a[0] {
		token := []int32{int32(value), int32(round)}
		if rank == 0 {
			check(mpi.Send(world, token, next, 7))
			must(mpi.Recv(world, token, before, 7))
			if int(token[0]) != value+size-1 || int(token[1]) != round {
				fail("round %d: the token is %v", round, token)
			}
			value = int(token[0])
			continue
		}
		must(mpi.Recv(world, token, before, 7))
		token[0]++
		check(mpi.Send(world, token, next, 7))
	}
}

// pingpong: two ranks, the datalen, the longest message. Lengths around the limits of
// packets.
func pingpong(a []int) {
	if rank != a[0] && rank != a[1] {
		return
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
		exchange(out[:n], in[:n], i, peer, rank == a[0])
	}
}

func exchange(out, in []byte, i, peer int, first bool) {
	if !first {
		receive(in, len(in), i, peer, i, peer, i)
		writePattern(out, i+1)
		check(mpi.Send(world, out, peer, i))
		return
	}
	writePattern(out, i)
	check(mpi.Send(world, out, peer, i))
	receive(in, len(in), i+1, peer, i, peer, i)
}

// ssend: sender, receiver, tag, length. The send must not be complete before the receive is
// posted, and must be soon after.
func ssend(a []int) {
	b, from, to, tag := make([]byte, a[3]), a[0], a[1], a[2]
	switch rank {
	case from:
		ssendTo(b, to, tag)
	case to:
		note := make([]byte, 1)
		must(mpi.Recv(world, note, from, tag+1))
		check(mpi.Send(world, note, from, tag+2))
		must(mpi.Recv(world, note, from, tag+3))
		receive(b, len(b), tag, from, tag, from, tag)
		receive(b, len(b), tag, from, tag, from, tag)
	}
}

func ssendTo(b []byte, to, tag int) {
	note := make([]byte, 1)
	writePattern(b, tag)
	r := must(world.Issend(mpi.Of(b), to, tag))
	check(mpi.Send(world, note, to, tag+1))
	must(mpi.Recv(world, note, to, tag+2))
	if done, _, err := r.Test(); done || err != nil {
		check(errors.Join(errEarly, err))
	}
	check(mpi.Send(world, note, to, tag+3))
	must(r.Wait())
	check(mpi.Ssend(world, b, to, tag))
}

// lostAck: sender, receiver, tag. Checks whether a synchronous send is complete after its
// acknowledgement has come, which was sent before 100 round trips of other messages.
func lostAck(a []int) {
	if rank != a[0] && rank != a[1] {
		return
	}
	note, peer := make([]byte, 1), a[0]+a[1]-rank
	var r mpi.Request
	if rank == a[0] {
		r = must(world.Issend(mpi.Of(make([]byte, 1)), peer, a[2]))
	} else {
		must(mpi.Recv(world, note, peer, a[2]))
	}
	for range 100 {
		roundTrip(note, peer, 71, rank == a[1])
	}
	if rank != a[0] {
		return
	}
	done, _, err := r.Test()
	check(err)
	if done {
		fmt.Printf("exchange: tag %d: complete\n", a[2])
		return
	}
	fmt.Printf("exchange: tag %d: never acknowledged\n", a[2])
	must(r.Wait())
}

// roundTrip sends b and receives it again, or the other way round.
func roundTrip(b []byte, peer, tag int, first bool) {
	if first {
		check(mpi.Send(world, b, peer, tag))
	}
	must(mpi.Recv(world, b, peer, tag))
	if !first {
		check(mpi.Send(world, b, peer, tag))
	}
}

// flood: sender, receiver, messages. None is received before all have come.
func flood(a []int) {
	from, to, n, b := a[0], a[1], a[2], make([]byte, 64)
	switch rank {
	case from:
		for i := range n {
			writePattern(b[:i%64], i)
			check(mpi.Send(world, b[:i%64], to, 11))
		}
		check(mpi.Send(world, b[:0], to, 12))
		must(mpi.Recv(world, b[:0], to, 13))
	case to:
		must(mpi.Recv(world, b[:0], from, 12))
		for i := range n {
			receive(b, i%64, i, from, 11, from, 11)
		}
		check(mpi.Send(world, b[:0], from, 13))
	}
}

// backlog: sender, receiver, messages of 200 KiB, both ranks of ours. None is received before
// the last send has begun, and the receiver's memory must not grow with them.
func backlog(a []int) {
	const length, most = 200 << 10, 100 << 20
	from, to, n, b := a[0], a[1], a[2], make([]byte, length)
	switch rank {
	case from:
		writePattern(b, n)
		reqs := make([]mpi.Request, n)
		for i := range reqs {
			r := must(mpi.Isend(world, b, to, 14))
			reqs[i] = r
		}
		check(mpi.Send(world, b[:0], to, 15))
		check(mpi.Waitall(reqs, nil))
	case to:
		before := resident()
		must(mpi.Recv(world, b[:0], from, 15))
		after := resident()
		if after-before > most {
			check(fmt.Errorf("%d MiB were kept of %d MiB that nobody has asked for", (after-before)>>20, n*length>>20))
		}
		for range n {
			receive(b, length, n, from, 14, from, 14)
		}
	}
}

// resident returns how much memory this process uses, in bytes.
func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	var size, pages int
	must(fmt.Sscan(string(text), &size, &pages))
	return pages * os.Getpagesize()
}

// pairs: messages per pair, datalen. All pairs at once, short and long ones.
func pairs(a []int) {
	d := a[1]
	length := func(from, to, k int) int {
		return []int{5 + from, d + to, 2*d + 7}[k%3]
	}
	var reqs []mpi.Request
	var checks []func()
	for k := range a[0] {
		for peer := range size {
			if peer == rank {
				continue
			}
			in, out := make([]byte, length(peer, rank, k)), make([]byte, length(rank, peer, k))
			writePattern(out, rank*7+peer+k)
			r := must(mpi.Irecv(world, in, peer, k))
			s := must(mpi.Isend(world, out, peer, k))
			reqs = append(reqs, r, s)
			checks = append(checks, func() { checkPattern(in, peer*7+rank+k) })
		}
	}
	check(mpi.Waitall(reqs, nil))
	for _, c := range checks {
		c()
	}
}

// pump: two ranks. They exchange messages until one is killed.
func pump(a []int) {
	b := make([]byte, 1000)
	if rank != a[0] && rank != a[1] {
		must(mpi.Recv(world, b[:1], a[0], 1)) // never comes
		return
	}
	peer := a[0] + a[1] - rank
	for i := 0; ; i++ {
		roundTrip(b, peer, 41, rank == a[0])
		if i == 20 {
			fmt.Printf("exchange: pump: rank %d runs\n", rank)
		}
	}
}
