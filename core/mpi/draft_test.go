package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// draftLayout is foreignLayout in the dialect of March 1999.
func draftLayout(procs int) layout {
	l := foreignLayout(procs)
	l.dialect = wire.Draft
	return l
}

// TestDraftRanks: packets of the draft have no ranks, so those of communicators
// that are not the world's are found by who sends.
func TestDraftRanks(t *testing.T) {
	draftLayout(6).run(t, func(t *testing.T, c *Comm) error {
		world := []int{0, 1, 2, 3, 4, 5}
		if err := talks(c, c, world...); err != nil {
			return err
		}
		d, err := c.Dup()
		if err != nil {
			return err
		}
		down, err := c.Split(c.Rank()%2, -c.Rank())
		if err != nil {
			return err
		}
		want := [][]int{{4, 2, 0}, {5, 3, 1}}[c.Rank()%2]
		if err := errors.Join(talks(c, d, world...), talks(c, down, want...), d.Free()); err != nil {
			return err
		}
		deep, err := down.Split(0, c.Rank())
		if err != nil {
			return err
		}
		return errors.Join(talks(c, deep, want[2], want[1], want[0]), talks(c, down, want...), deep.Free(), down.Free(), talks(c, c, world...))
	})
}

// TestDraftBetween: intercommunicators, whose partners are those of the other side,
// and what is made of both.
func TestDraftBetween(t *testing.T) {
	draftLayout(5).run(t, func(t *testing.T, c *Comm) error {
		_, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		got := []int64{0}
		var st Status
		if me := inter.Rank(); c.Rank() < 2 {
			err = Send(inter, []int64{int64(c.Rank())}, 2-me, 4)
		} else if me > 0 {
			st, err = Recv(inter, got, AnySource, AnyTag)
			err = errors.Join(err, expect("source", st.Source, 2-me), expect("from", int(got[0]), 2-me), expect("tag", st.Tag, 4))
		}
		if err != nil {
			return err
		}
		both, err := inter.Merge(c.Rank() < 2)
		if err != nil {
			return err
		}
		return errors.Join(talks(c, both, 2, 3, 4, 0, 1), inter.Free(), both.Free())
	})
}

// TestDraftWildcards: collectives share the context of messages, whose wildcards do
// not see them.
func TestDraftWildcards(t *testing.T) {
	draftLayout(4).run(t, func(t *testing.T, c *Comm) error {
		d, err := c.Split(0, -c.Rank())
		if err != nil {
			return err
		}
		for _, c := range []*Comm{c, d} {
			in := []int64{0}
			r, err := Irecv(c, in, AnySource, AnyTag)
			if err != nil {
				return err
			}
			for root := range c.Size() {
				b := []int64{int64(c.Rank())}
				if err := errors.Join(Bcast(c, b, root), expect("broadcast", int(b[0]), root), c.Barrier()); err != nil {
					return err
				}
			}
			if found, st, err := Iprobe(c, AnySource, AnyTag); found || err != nil {
				return fmt.Errorf("a message of a collective can be seen: %+v, %w", st, err)
			}
			next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
			if err := errors.Join(c.Barrier(), Send(c, []int64{7}, next, 9)); err != nil {
				return err
			}
			st, err := r.Wait()
			if err := errors.Join(err, expect("source", st.Source, before), expect("tag", st.Tag, 9), expect("value", in[0], 7)); err != nil {
				return err
			}
			if err := Send(c, []int64{8}, next, 5); err != nil {
				return err
			}
			m, st, err := Mprobe(c, before, AnyTag)
			if err != nil {
				return err
			}
			err = expect("probed", st.Source, before)
			st, e := Mrecv(m, in)
			if err := errors.Join(err, e, expect("received", st.Source, before), expect("value", in[0], 8)); err != nil {
				return err
			}
		}
		return d.Free()
	})
}

// TestDraftContexts: a new communicator has one context ID, the one after the
// largest that any member has in use. The world has 0, each proc's own 1.
func TestDraftContexts(t *testing.T) {
	l := draftLayout(2)
	l.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 0 {
			first, err := c.Dup()
			if err != nil {
				return err
			}
			second, err := c.Dup()
			if err != nil {
				return err
			}
			return errors.Join(expect("context", first.Context()>>1, 2), expect("next", second.Context()>>1, 78))
		}
		// The draft's tags of Reduce and Bcast have other values, and contexts are halved.
		return errors.Join(as(c, 1, 190).sends(0, 8, 0), as(c, 1, 120).gets(0, 8, 1),
			as(c, 1, 190).sends(0, 8, 77), as(c, 1, 120).gets(0, 8, 77))
	})
}

// TestDraftSmallest: one byte in a packet, one packet in flight.
func TestDraftSmallest(t *testing.T) {
	l := draftLayout(3)
	l.dataLen, l.ackMark, l.hiWater = 1, 1, 1
	l.run(t, func(t *testing.T, c *Comm) error {
		next, before := (c.Rank()+1)%3, (c.Rank()+2)%3
		in := make([]byte, 300)
		st, err := Sendrecv(c, pattern(300, c.Rank()), next, 1, in, before, 1)
		if err != nil {
			return err
		}
		return errors.Join(expect("source", st.Source, before), expect("data", string(in), string(pattern(300, before))), talks(c, c, 0, 1, 2))
	})
}
