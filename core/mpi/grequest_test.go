package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/p2p"
)

// told notes what is called of a generalized request.
type told struct {
	queries, frees int
	cancels        []bool
	cancelled      bool
	queryErr       error
	freeErr        error
}

func (n *told) functions(c *Comm) Generalized {
	double := datatype.Basic(datatype.Float64)
	return Generalized{
		Query: func(st *Status) error {
			n.queries++
			st.Source, st.Tag = 3, 4
			st.SetCancelled(n.cancelled)
			_, _, err := Iprobe(c, AnySource, AnyTag) // callbacks may call MPI
			return errors.Join(n.queryErr, err, st.SetElements(double, 7))
		},
		Free: func() error { n.frees++; return n.freeErr },
		Cancel: func(complete bool) error {
			n.cancels = append(n.cancels, complete)
			n.cancelled = !complete
			return nil
		},
	}
}

func checkGeneralized(t *testing.T, c *Comm) error {
	return first(checkGeneralizedWaits(c), checkGeneralizedFamilies(c), checkGeneralizedFree(c), checkGeneralizedErrors(c), checkGeneralizedBeside(c))
}

func checkGeneralizedWaits(c *Comm) error {
	n := &told{}
	q := Request(p2p.Grequest(c.in().Process(), n.functions(c).in()))
	done, _, err := q.Test()
	if err := first(err, expect("done", done, false), expect("queries", n.queries, 0)); err != nil {
		return err
	}
	other := q
	ended := make(chan error)
	go func() { ended <- other.Complete() }() // by whoever carries it out
	st, err := q.Wait()
	if err := first(err, <-ended, expect("null", q.Null(), true), expect("queries", n.queries, 1), expect("frees", n.frees, 1),
		expect("source", st.Source, 3), expect("tag", st.Tag, 4), expect("cancelled", st.Cancelled(), false)); err != nil {
		return err
	}
	double := datatype.Basic(datatype.Float64)
	k, err := st.Count(double)
	e, bad := st.Elements(double)
	return first(err, bad, expect("count", k, 7), expect("elements", e, 7),
		class("waited for twice", second(other.Wait()), mpierr.Request), class("completed twice", other.Complete(), mpierr.Request))
}

func checkGeneralizedFamilies(c *Comm) error {
	n := &told{}
	q := Request(p2p.Grequest(c.in().Process(), n.functions(c).in()))
	if err := first(q.Cancel(), q.Complete(), q.Cancel()); err != nil {
		return err
	}
	n.cancelled = true
	done, st, err := q.Status() // asks, and leaves it as it is
	if err := first(err, expect("done", done, true), expect("cancelled", st.Cancelled(), true), expect("queries", n.queries, 1), expect("frees", n.frees, 0)); err != nil {
		return err
	}
	reqs, sts := []Request{{}, q, {}}, make([]Status, 3)
	if err := first(Waitall(reqs, sts), equal("cancels", n.cancels, []bool{false, true}), expect("frees", n.frees, 1), expect("source", sts[1].Source, 3)); err != nil {
		return err
	}
	pending := Request(p2p.Grequest(c.in().Process(), Generalized{}.in())) // without functions
	reqs[2], reqs[0] = Request(p2p.Grequest(c.in().Process(), n.functions(c).in())), pending
	if err := reqs[2].Complete(); err != nil {
		return err
	}
	i, st, err := Waitany(reqs)
	if err := first(err, expect("index", i, 2), expect("tag", st.Tag, 4)); err != nil {
		return err
	}
	if done, err := Testall(reqs, nil); done || err != nil {
		return fmt.Errorf("all: %v: %w", done, err)
	}
	if err := first(pending.Cancel(), pending.Complete()); err != nil {
		return err
	}
	is, err := Waitsome(reqs, sts)
	return first(err, equal("some", is, []int{0}), expect("status", sts[0], emptyStatus))
}

func checkGeneralizedFree(c *Comm) error {
	n := &told{}
	late, early := Request(p2p.Grequest(c.in().Process(), n.functions(c).in())), Request(p2p.Grequest(c.in().Process(), n.functions(c).in()))
	copied := late
	if err := first(late.Free(), expect("frees before the end", n.frees, 0), copied.Complete(), expect("frees", n.frees, 1)); err != nil {
		return err
	}
	return first(early.Complete(), early.Free(), expect("frees", n.frees, 2), expect("queries", n.queries, 0))
}

func checkGeneralizedErrors(c *Comm) error {
	n := &told{queryErr: errOwn}
	q := Request(p2p.Grequest(c.in().Process(), n.functions(c).in()))
	err := q.Complete()
	_, bad := q.Wait()
	if !errors.Is(bad, errOwn) || n.frees != 1 {
		return fmt.Errorf("query fails: %w, %w, %d frees", err, bad, n.frees)
	}
	n = &told{freeErr: errOwn}
	q = Request(p2p.Grequest(c.in().Process(), n.functions(c).in()))
	err = q.Complete()
	sts := make([]Status, 1)
	bad = Waitall([]Request{q}, sts)
	if !errors.Is(sts[0].Err, errOwn) || sts[0].Tag != 4 {
		return fmt.Errorf("free fails: %w, %w, %+v", err, bad, sts[0])
	}
	r, err := c.RecvInit(Of([]byte{0}), ProcNull, 0)
	return first(class("free fails", bad, mpierr.InStatus), err, class("complete of another kind", r.Complete(), mpierr.Request))
}

// checkGeneralizedBeside: one that is completed by a message's arrival.
func checkGeneralizedBeside(c *Comm) error {
	other := 1 - c.Rank()
	r, err := c.Irecv(Of([]byte{0}), other, 8)
	if err != nil {
		return err
	}
	n := &told{}
	q := Request(p2p.Grequest(c.in().Process(), n.functions(c).in()))
	worker := q
	ended := make(chan error)
	go func() {
		_, err := r.Wait()
		ended <- errors.Join(err, worker.Complete())
	}()
	err = c.Send(Of([]byte{1}), other, 8)
	return first(err, second(q.Wait()), <-ended, expect("frees", n.frees, 1))
}

func TestGrequestNeedsInit(t *testing.T) {
	if Initialized() {
		t.Fatal("Init was called")
	}
	if _, err := GrequestStart(Generalized{}); !errors.Is(err, ErrNotInitialized) {
		t.Error(err)
	}
	if err := BufferFlush(); !errors.Is(err, ErrNotInitialized) {
		t.Error(err)
	}
	if _, err := BufferIflush(); !errors.Is(err, ErrNotInitialized) {
		t.Error(err)
	}
}
