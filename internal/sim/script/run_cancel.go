package script

import "github.com/openimpi/impi/core/mpi"

// control returns the tag by which the fate of a cancelled send is told.
func (m *Message) control() int { return TagLimit + m.ID%controlTags }

func (r *runner) cancel(s Cancel) error {
	m := r.a.byID[s.Msg].m
	if r.me != m.To && (r.me != m.From || s.Side == RecvSide) {
		return nil
	}
	r.log(s)
	if s.Side == RecvSide {
		return r.cancelRecv(m)
	}
	cancelled := false
	if r.me == m.From {
		var err error
		if cancelled, err = r.cancelSend(m); err != nil {
			return err
		}
	}
	if r.me != m.To {
		return nil
	}
	if m.From != m.To {
		c, src := r.comm(m.Comm, m.From)
		told := make([]bool, 1)
		if _, err := mpi.Recv(c, told, src, m.control()); err != nil {
			return failed(err)
		}
		cancelled = told[0]
	}
	return r.outcome(m, cancelled)
}

func (r *runner) cancelSend(m *Message) (cancelled bool, err error) {
	q := Req{m.ID, SendSide}
	if cancelled, _, err = r.abort(q); err != nil {
		return false, failed(err)
	}
	if m.From != m.To {
		c, dst := r.comm(m.Comm, m.To)
		err = mpi.Send(c, []bool{cancelled}, dst, m.control())
	}
	return cancelled, failed(err)
}

func (r *runner) abort(q Req) (cancelled bool, st mpi.Status, err error) {
	p := r.reqs[q]
	if err := p.req.Cancel(); err != nil {
		return false, st, err
	}
	st, err = p.req.Wait()
	if st.Cancelled() || q.Side == SendSide {
		delete(r.reqs, q)
		r.rec.Cancels = append(r.rec.Cancels, Cancelled{q, st.Cancelled()})
	}
	return st.Cancelled(), st, err
}

// outcome makes the receiver act on the fate of the send.
func (r *runner) outcome(m *Message, cancelled bool) error {
	q := Req{m.ID, RecvSide}
	p := r.reqs[q]
	switch {
	case cancelled && p != nil:
		if gone, _, err := r.abort(q); err != nil || !gone {
			return r.ghost(m, err)
		}
		return nil
	case cancelled:
		c, src, tag := r.wanted(m)
		if found, _, err := mpi.Iprobe(c, src, tag); err != nil || found {
			return r.ghost(m, err)
		}
		return nil
	case p != nil:
		st, err := p.req.Wait()
		return r.finish(q, st, err)
	}
	return r.recv(m)
}

func (r *runner) ghost(m *Message, err error) error {
	if err != nil {
		return failed(err)
	}
	return mismatch("message %d was cancelled, but is there", m.ID)
}

func (r *runner) cancelRecv(m *Message) error {
	q := Req{m.ID, RecvSide}
	p := r.reqs[q]
	cancelled, st, err := r.abort(q)
	switch {
	case !cancelled:
		return r.finish(q, st, err)
	case err != nil:
		return failed(err)
	case p.buf.unlike(untouched) != "":
		return mismatch("message %d: its receive was cancelled, but %s", m.ID, p.buf.unlike(untouched))
	}
	return r.recv(m)
}

func (r *runner) unmatched(s Unmatched) error {
	c, src := r.open[s.Comm], mpi.AnySource
	if s.Source != anySource {
		src = r.comms.byName[s.Comm].rank(s.Source)
	}
	buf := Uint16.blank(3)
	q, err := buf.irecv(c, src, s.Tag)
	if err != nil {
		return failed(err)
	}
	if err := q.Cancel(); err != nil {
		return failed(err)
	}
	st, err := q.Wait()
	switch {
	case err != nil:
		return failed(err)
	case !st.Cancelled() || buf.unlike(untouched) != "":
		return mismatch("a receive of which there is no message got one from %d, tag %d", st.Source, st.Tag)
	}
	return nil
}
