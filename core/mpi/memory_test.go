package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// Messages of all sizes over links through memory, expected and not, cut short,
// both ways at a time: what is copied, written in place and lent is one order.
func TestAllSizesOverMemory(t *testing.T) {
	sizes := []int{0, 8, 2000, 2049, 32<<10 - 1, 32 << 10, 100_000, 256 << 10, 256<<10 + 1, 1 << 20}
	for _, spin := range []string{"auto", "0"} {
		for _, size := range []int{4 << 10, 512 << 10} {
			t.Run(fmt.Sprintf("spin=%s/%d", spin, size), func(t *testing.T) {
				l := layout{procs: 3, dataLen: 256 << 10, ackMark: 64, hiWater: 256, spin: spin, link: rings(size)}
				l.run(t, func(t *testing.T, c *Comm) error {
					for round := range 3 {
						if err := exchangeSizes(c, sizes, round); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}

// exchangeSizes sends a message of each size to the right; in odd rounds they
// have come before their receives are posted.
func exchangeSizes(c *Comm, sizes []int, round int) error {
	right, left := circle(c)
	var reqs []Request
	in := make([][]byte, len(sizes))
	post := func() error {
		for i, n := range sizes {
			in[i] = make([]byte, n-n/4*(round/2)) // the last round cuts them short
			r, err := Irecv(c, in[i], left, i)
			if err != nil {
				return err
			}
			reqs = append(reqs, r)
		}
		return nil
	}
	if round != 1 {
		if err := post(); err != nil {
			return err
		}
	}
	for i, n := range sizes {
		r, err := Isend(c, content(n, c.Rank(), i), right, i)
		if err != nil {
			return err
		}
		reqs = append(reqs, r)
	}
	if round == 1 {
		if _, err := Sendrecv(c, []byte{1}, right, 99, make([]byte, 1), left, 99); err != nil {
			return err
		}
		if err := post(); err != nil {
			return err
		}
	}
	if err := Waitall(reqs, nil); err != nil && !(round == 2 && errors.Is(err, message.ErrTruncate)) {
		return err
	}
	for i, b := range in {
		want := content(sizes[i], left, i)
		if string(b) != string(want[:len(b)]) {
			return fmt.Errorf("round %d: the message of %d bytes is another", round, sizes[i])
		}
	}
	return nil
}

func content(n, rank, tag int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + i>>8 + 31*rank + 7*tag)
	}
	return b
}

// A sender that has lent its memory and waits sleeps; the receiver, who does
// something else first, wakes it.
func TestLenderSleepsUntilItsMemoryIsTaken(t *testing.T) {
	procs := layout{procs: 2, dataLen: 1 << 20, spin: "0", link: rings(8 << 10)}.start(t)
	data := content(1<<20, 0, 0)
	sent := make(chan error)
	go func() { sent <- Send((*Comm)(procs[0].Comms.World), data, 1, 0) }()
	sleeping(procs[0], 1)
	in := make([]byte, len(data))
	if _, err := Recv((*Comm)(procs[1].Comms.World), in, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if string(in) != string(data) {
		t.Error("another message")
	}
}

// The end of a peer is noticed by who polls its memory, too.
func TestEndOfAPeerInMemory(t *testing.T) {
	for _, spin := range []string{"auto", "1h"} {
		procs := layout{procs: 2, spin: spin, link: rings(8 << 10)}.start(t)
		procs[0].Endpoints.Grace = 0
		got := make(chan error)
		go func() { got <- second(Recv((*Comm)(procs[0].Comms.World), make([]byte, 1), 1, 0)) }()
		procs[1].Lock()
		procs[1].Endpoints.Close()
		procs[1].Unlock()
		if err := <-got; !errors.Is(err, message.ErrPeerDown) {
			t.Errorf("spin %s: %v", spin, err)
		}
	}
}

// Nothing is allocated for a message over memory, short or lent.
func TestNoAllocationsOverMemory(t *testing.T) {
	own := func(int, int) string { return datatype.HostOrder().String() } // as nodes say it of own sites
	for _, n := range []int{8, 4 << 10, 300 << 10} {
		procs := layout{procs: 2, dataLen: 256 << 10, ackMark: 64, hiWater: 256, link: rings(512 << 10), data: own}.start(t)
		out, in := make([]byte, n), make([]byte, n)
		message := func() {
			s, err := Isend((*Comm)(procs[0].Comms.World), out, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Irecv((*Comm)(procs[1].Comms.World), in, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for done := [2]bool{}; !done[0] || !done[1]; {
				done[0], _, _ = s.Test()
				done[1], _, _ = r.Test()
			}
		}
		for range 300 {
			message()
		}
		got := testing.AllocsPerRun(100, message)
		for range 3 { // it counts the whole program, goroutines of earlier tests included
			got = min(got, testing.AllocsPerRun(100, message))
		}
		if got != 0 {
			t.Errorf("%d bytes: %v allocations", n, got)
		}
	}
}
