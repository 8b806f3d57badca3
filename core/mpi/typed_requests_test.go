package mpi

import (
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

func checkBuffered(t *testing.T, c *Comm) error {
	const n = columnCount
	v := columns(n)
	if c.Rank() == 1 {
		if err := second(Recv(c, []byte{0}, 0, 9)); err != nil {
			return err
		}
		in := make([]float64, n)
		return first(second(c.Recv(Of(in), 0, 1)), equal("data", in, row(n, 7)))
	}
	b := apart(n, 7)
	if err := class("no buffer", c.Bsend(Typed(b, 1, v), 1, 1), mpierr.Buffer); err != nil {
		return err
	}
	if err := c.in().Process().AttachedBuffer().Attach(8*n + BsendOverhead); err != nil { // the gaps take no room
		return err
	}
	err := c.Bsend(Typed(b, 1, v), 1, 1)
	clear(b)
	return first(err,
		class("no room", c.Bsend(Typed(b, 1, v), 1, 1), mpierr.Buffer),
		Send(c, []byte{1}, 1, 9), second(c.in().Process().AttachedBuffer().Detach()))
}

func checkFlush(t *testing.T, c *Comm) error {
	v := columns(columnCount)
	if c.Rank() == 1 {
		return first(second(Recv(c, []byte{0}, 0, 9)), second(c.Recv(Of(make([]float64, columnCount)), 0, 1)))
	}
	p := c.in().Process()
	if size, err := p.AttachedBuffer().Detach(); size != 0 || err != nil {
		return fmt.Errorf("detached %d: %w", size, err)
	}
	err := first(p.AttachedBuffer().Flush(), p.AttachedBuffer().Attach(5000), class("attached twice", p.AttachedBuffer().Attach(10), mpierr.Buffer),
		class("negative", p.AttachedBuffer().Attach(-1), mpierr.Buffer), c.Bsend(Typed(apart(columnCount, 0), 1, v), 1, 1))
	q := p.AttachedBuffer().Iflush()
	if done, _, bad := q.Test(); done || bad != nil {
		return fmt.Errorf("flushed before the receive: %w", bad)
	}
	if err := first(err, Send(c, []byte{1}, 1, 9), second(q.Complete()), expect("null", q.Null(), true), p.AttachedBuffer().Flush()); err != nil {
		return err
	}
	size, err := p.AttachedBuffer().Detach()
	return first(err, expect("size", size, 5000))
}

func checkFamilies(t *testing.T, c *Comm) error {
	null := make([]Request, 3)
	idle, err := c.RecvInit(Of([]byte{0}), ProcNull, 0)
	if err != nil {
		return err
	}
	null[1] = idle // inactive ones are as good as null
	i, st, err := Waitany(null)
	if err := first(err, expect("Waitany", i, Undefined), expect("status", st, emptyStatus)); err != nil {
		return err
	}
	i, done, st, err := Testany(null)
	if err := first(err, expect("Testany", i, Undefined), expect("done", done, true), expect("status", st, emptyStatus)); err != nil {
		return err
	}
	is, err := Waitsome(null, nil)
	if err := first(err, expect("Waitsome", is == nil, true)); err != nil {
		return err
	}
	is, done, err = Testsome(null, nil)
	if err := first(err, expect("Testsome", is == nil && done, true)); err != nil {
		return err
	}
	sts := []Status{{Tag: 1}, {Tag: 1}, {Tag: 1}}
	if err := first(Waitall(null, sts), equal("Waitall", sts, []Status{emptyStatus, emptyStatus, emptyStatus})); err != nil {
		return err
	}
	if done, err := Testall(null, sts); !done || err != nil {
		return fmt.Errorf("Testall: %v %w", done, err)
	}
	if st, err := null[0].Wait(); err != nil || st != emptyStatus {
		return fmt.Errorf("Wait: %+v %w", st, err)
	}
	if done, st, err := null[1].Test(); err != nil || !done || st != emptyStatus {
		return fmt.Errorf("Test: %+v %w", st, err)
	}
	return checkSomeOf(c)
}

// checkSomeOf: of two receives one gets its message, the other later.
func checkSomeOf(c *Comm) error {
	v, n := columns(columnCount), columnCount
	if c.Rank() == 1 {
		return first(c.Send(Typed(apart(n, 1), 1, v), 0, 1), second(Recv(c, []byte{0}, 0, 3)), c.Send(Typed(apart(n, 2), 1, v), 0, 2))
	}
	one, two := make([]float64, 3*n-2), make([]float64, n-1)
	reqs := make([]Request, 3)
	var err error
	if reqs[2], err = c.Irecv(Typed(one, 1, v), 1, 1); err != nil {
		return err
	}
	if reqs[0], err = c.Irecv(Of(two), 1, 2); err != nil {
		return err
	}
	i, st, err := Waitany(reqs)
	if err := first(err, expect("index", i, 2), expect("tag", st.Tag, 1), equal("data", one, apart(n, 1))); err != nil {
		return err
	}
	if i, done, _, err := Testany(reqs); i != Undefined || done || err != nil {
		return fmt.Errorf("Testany: %d %v %w", i, done, err)
	}
	if is, done, err := Testsome(reqs, nil); is != nil || done || err != nil {
		return fmt.Errorf("Testsome: %d %v %w", is, done, err)
	}
	if done, err := Testall(reqs, nil); done || err != nil {
		return fmt.Errorf("Testall: %v %w", done, err)
	}
	if err := Send(c, []byte{1}, 1, 3); err != nil {
		return err
	}
	sts := make([]Status, 3)
	is, err := Waitsome(reqs, sts) // of a message that does not fit
	return first(class("some", err, mpierr.InStatus), equal("indices", is, []int{0}), class("status", sts[0].Err, mpierr.Truncate),
		equal("data", two, row(n-1, 2)), expect("null", reqs[0].Null(), true))
}

func checkStatusFamilies(t *testing.T, c *Comm) error {
	null := make([]Request, 2)
	i, done, st, err := Statusany(null)
	if err := first(err, expect("any", i, Undefined), expect("done", done, true), expect("status", st, emptyStatus)); err != nil {
		return err
	}
	if is, done, err := Statussome(null, nil); is != nil || !done || err != nil {
		return fmt.Errorf("some: %v %v %w", is, done, err)
	}
	if done, err := Statusall(null, nil); !done || err != nil {
		return fmt.Errorf("all: %v %w", done, err)
	}
	v := columns(columnCount)
	if c.Rank() == 1 {
		return first(c.Send(Typed(apart(columnCount, 1), 1, v), 0, 1), second(Recv(c, []byte{0}, 0, 3)), Send(c, []byte{1}, 0, 2))
	}
	reqs, sts := make([]Request, 2), make([]Status, 2)
	reqs[0], _ = c.Irecv(Typed(make([]float64, 3*columnCount), 1, v), 1, 1)
	reqs[1], _ = c.Irecv(Of([]byte{0}), 1, 2)
	for done := false; !done; {
		if i, done, st, err = Statusany(reqs); err != nil {
			return err
		}
	}
	k, err := st.Count(v)
	if err := first(err, expect("any", i, 0), expect("tag", st.Tag, 1), expect("count", k, 1), expect("active", reqs[0].Null(), false)); err != nil {
		return err
	}
	is, done, err := Statussome(reqs, sts)
	if err := first(err, equal("some", is, []int{0}), expect("done", done, true), expect("tag", sts[0].Tag, 1)); err != nil {
		return err
	}
	if done, err := Statusall(reqs, sts); done || err != nil {
		return fmt.Errorf("all: %v %w", done, err)
	}
	if err := Send(c, []byte{1}, 1, 3); err != nil {
		return err
	}
	for done = false; !done; {
		if done, err = Statusall(reqs, sts); err != nil {
			return err
		}
	}
	return first(expect("tag", sts[1].Tag, 2), expect("active", reqs[1].Null(), false), Waitall(reqs, nil))
}

func checkPersistent(t *testing.T, c *Comm) error {
	const n, rounds = columnCount, 3
	v := columns(n)
	if c.Rank() == 1 {
		in := make([]float64, 3*n-2)
		q, err := c.RecvInit(Typed(in, 1, v), 0, AnyTag)
		if err := first(err, v.Free()); err != nil {
			return err
		}
		for i := range 4 * rounds {
			clear(in)
			err := q.Start()
			again := class("start of an active one", q.Start(), mpierr.Request)
			st, bad := q.Wait()
			if err := first(err, again, bad, equal("data", in, apart(n, float64(i/4))), expect("null", q.Null(), false), expect("bytes", st.Bytes(), 8*n)); err != nil {
				return err
			}
		}
		return first(q.Free(), expect("null", q.Null(), true), class("start of null", q.Start(), mpierr.Request))
	}
	if err := c.in().Process().AttachedBuffer().Attach(1 << 16); err != nil {
		return err
	}
	out := apart(n, 0)
	var reqs [4]Request
	for i, init := range []func(Buffer, int, int) (Request, error){c.SendInit, c.SsendInit, c.BsendInit, c.RsendInit} {
		var err error
		if reqs[i], err = init(Typed(out, 1, v), 1, i); err != nil {
			return err
		}
	}
	if err := first(v.Free(), class("start of null", Startall(append(reqs[:4:4], Request{})), mpierr.Request)); err != nil {
		return err
	}
	for i := range rounds {
		copy(out, apart(n, float64(i)))
		if err := first(Startall(reqs[:]), Waitall(reqs[:], nil)); err != nil {
			return err
		}
	}
	for i := range reqs {
		if err := reqs[i].Free(); err != nil {
			return err
		}
	}
	return second(c.in().Process().AttachedBuffer().Detach())
}

func checkFree(t *testing.T, c *Comm) error {
	const n = columnCount
	v := columns(n)
	if c.Rank() == 1 {
		if err := second(Recv(c, []byte{0}, 0, 9)); err != nil {
			return err
		}
		for i := range 2 {
			in := make([]float64, n)
			if err := first(second(c.Recv(Of(in), 0, i)), equal("data", in, row(n, float64(i)))); err != nil {
				return err
			}
		}
		return nil
	}
	plain, err := c.Isend(Typed(apart(n, 0), 1, v), 1, 0)
	if err != nil {
		return err
	}
	repeated, err := c.SendInit(Typed(apart(n, 1), 1, v), 1, 1)
	if err := first(err, repeated.Start()); err != nil {
		return err
	}
	copied := plain
	return first(plain.Free(), repeated.Free(), expect("null", plain.Null() && repeated.Null(), true),
		class("free of null", plain.Free(), mpierr.Request), class("wait for a copy", second(copied.Wait()), mpierr.Request),
		Send(c, []byte{1}, 1, 9))
}

func checkCancel(t *testing.T, c *Comm) error {
	const n = columnCount
	v := columns(n)
	if c.Rank() == 1 { // the first message is taken back before there is a receive
		in := make([]float64, n)
		err := second(Recv(c, []byte{0}, 0, 9))
		st, bad := c.Recv(Of(in), 0, AnyTag)
		return first(err, bad, equal("data", in, row(n, 2)), expect("tag", st.Tag, 1))
	}
	in := make([]float64, 3*n-2)
	r, err := c.Irecv(Typed(in, 1, v), 1, 0)
	if err := first(err, r.Cancel()); err != nil {
		return err
	}
	st, err := r.Wait()
	if err := first(err, expect("cancelled", st.Cancelled(), true), expect("null", r.Null(), true), class("cancel of null", r.Cancel(), mpierr.Request)); err != nil {
		return err
	}
	s, err := c.Issend(Typed(apart(n, 1), 1, v), 1, 0)
	if err := first(err, s.Cancel()); err != nil {
		return err
	}
	st, err = s.Wait()
	if err := first(err, expect("send cancelled", st.Cancelled(), true)); err != nil {
		return err
	}
	q, err := c.RecvInit(Typed(in, 1, v), 1, 0)
	if err := first(err, class("cancel of an inactive one", q.Cancel(), mpierr.Request), q.Start(), q.Cancel()); err != nil {
		return err
	}
	st, err = q.Wait()
	return first(err, expect("cancelled", st.Cancelled(), true), expect("null", q.Null(), false), q.Free(),
		Send(c, []byte{1}, 1, 9), c.Send(Typed(apart(n, 2), 1, v), 1, 1))
}
