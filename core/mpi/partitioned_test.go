package mpi

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// TestPartitioned sends parts in any order, by several goroutines, in several rounds,
// to a receive with other parts.
func TestPartitioned(t *testing.T) {
	for name, l := range map[string]layout{
		"one site":  {procs: 2},
		"two sites": {procs: 2, client: func(r int) int { return r }, messages: true},
	} {
		t.Run(name, func(t *testing.T) {
			l.run(t, func(_ *testing.T, c *Comm) error {
				const n, parts = 24, 6
				items := make([]int32, n)
				if c.Rank() == 1 {
					return receiveParts(c, items)
				}
				q, err := c.PsendInit(Of(items), parts, 1, 7)
				if err != nil {
					return err
				}
				for round := range int32(3) {
					if err := q.Start(); err != nil {
						return err
					}
					var all sync.WaitGroup
					errs := make([]error, parts)
					for i := range parts {
						all.Add(1)
						go func() {
							defer all.Done()
							for j := range n / parts {
								items[i*n/parts+j] = round*100 + int32(i*n/parts+j)
							}
							errs[i] = q.Pready(i)
						}()
					}
					err := second(q.Wait())
					all.Wait()
					if err := errors.Join(append(errs, err)...); err != nil {
						return err
					}
				}
				return q.Free()
			})
		})
	}
}

func receiveParts(c *Comm, items []int32) error {
	q, err := c.PrecvInit(Of(items), 2, 0, 7)
	if err != nil {
		return err
	}
	for round := range int32(3) {
		if err := q.Start(); err != nil {
			return err
		}
		for there := false; !there; {
			if there, err = q.Parrived(1); err != nil {
				return err
			}
		}
		st, err := q.Wait()
		count, bad := st.Count(datatype.Basic(datatype.Int32))
		if err := first(err, bad, expect("count", count, len(items)), expect("source", st.Source, 0), expect("tag", st.Tag, 7)); err != nil {
			return err
		}
		for i, v := range items {
			if v != round*100+int32(i) {
				return fmt.Errorf("round %d: item %d is %d", round, i, v)
			}
		}
	}
	return q.Free()
}

// TestPartitionedMatch starts operations in another order than they were made in, beside
// messages and receives that they must not meet.
func TestPartitionedMatch(t *testing.T) {
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		var reqs [3]Request
		var bytes [3][]byte
		other := 1 - c.Rank()
		for i := range reqs {
			bytes[i] = []byte{0, 0}
			var err error
			if c.Rank() == 0 {
				copy(bytes[i], []byte{byte(10 + i), byte(20 + i)})
				reqs[i], err = c.PsendInit(Of(bytes[i]), 2, other, 3)
			} else {
				reqs[i], err = c.PrecvInit(Of(bytes[i]), 1, other, 3)
			}
			if err != nil {
				return err
			}
		}
		word := []byte{99}
		if c.Rank() == 0 {
			for _, i := range []int{2, 0, 1} {
				if err := first(reqs[i].Start(), reqs[i].PreadyList([]int{1, 0})); err != nil {
					return err
				}
			}
			return first(Waitall(reqs[:], nil), Send(c, word, other, 3))
		}
		any, err := Irecv(c, word, AnySource, AnyTag)
		if err != nil {
			return err
		}
		for _, i := range []int{1, 2} { // those do not wait for the first
			if err := first(reqs[i].Start(), second(reqs[i].Wait()), expect("part", bytes[i][1], byte(20+i))); err != nil {
				return err
			}
		}
		st, err := any.Wait()
		return first(err, expect("length", st.Bytes(), 1), reqs[0].Start(), second(reqs[0].Wait()), expect("part", bytes[0][0], 10))
	})
}

// TestPartitionedEdges is about nothing to send, nobody, oneself, and what is wrong.
func TestPartitionedEdges(t *testing.T) {
	layout{procs: 1}.run(t, func(_ *testing.T, c *Comm) error {
		in, out := []int32{0, 0}, []int32{4, 5}
		r, err1 := c.PrecvInit(Of(in), 2, 0, 0)
		s, err2 := c.PsendInit(Of(out), 2, 0, 0)
		none, err3 := c.PsendInit(Of([]byte{}), 0, 0, 1)
		sink, err4 := c.PrecvInit(Of([]byte{}), 3, 0, 1)
		nobody, err5 := c.PrecvInit(Of(in), 1, ProcNull, 0)
		gone, err6 := c.PsendInit(Of(out), 2, ProcNull, 0)
		plain, err7 := c.RecvInit(Of(in), 0, 0)
		err := first(err1, err2, err3, err4, err5, err6, err7,
			class("inactive", s.Pready(0), mpierr.Request), class("not partitioned", plain.Pready(0), mpierr.Request),
			class("not partitioned", second(plain.Parrived(0)), mpierr.Request),
			class("parts", second(c.PsendInit(Of(in), 3, 0, 0)), mpierr.Arg), class("parts", second(c.PrecvInit(Of(in), -1, 0, 0)), mpierr.Arg),
			class("any source", second(c.PrecvInit(Of(in), 1, AnySource, 0)), mpierr.Rank), class("any tag", second(c.PrecvInit(Of(in), 1, 0, AnyTag)), mpierr.Tag))
		there, bad := r.Parrived(0)
		err = first(err, bad, expect("inactive", there, true), s.Start(), r.Start(), class("started", s.Start(), mpierr.Request))
		there, bad = r.Parrived(1)
		err = first(err, bad, expect("arrived", there, false), class("send", second(s.Parrived(0)), mpierr.Request), class("receive", r.Pready(0), mpierr.Request),
			class("range", s.PreadyRange(0, 2), mpierr.Arg), class("range", s.PreadyRange(-1, 1), mpierr.Arg), class("range", s.PreadyRange(1, -1), mpierr.Arg),
			class("twice", s.PreadyList([]int{1, 1}), mpierr.Arg), s.PreadyRange(0, -1), class("cancel", r.Cancel(), mpierr.Request), class("free", r.Free(), mpierr.Request),
			s.Pready(1), class("again", s.Pready(1), mpierr.Arg), s.Pready(0), second(s.Wait()), second(r.Wait()), expect("item", in[1], 5))
		err = first(err, none.Start(), sink.Start(), second(none.Wait()), second(sink.Wait()))
		st, bad := Status{}, nobody.Start()
		if bad == nil {
			st, bad = nobody.Wait()
		}
		return first(err, bad, expect("nobody", st.Source, ProcNull), gone.Start(), gone.PreadyRange(0, 1), second(gone.Wait()))
	})
}
