package script

import (
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
)

func (r *runner) start(s Start) error {
	m := r.a.byID[s.Msg].m
	if m.rank(s.Side) != r.me {
		return nil
	}
	r.log(s)
	switch {
	case !s.Blocking:
		return r.begin(s.Req, m)
	case s.Side == SendSide:
		return r.send(m)
	}
	return r.recv(m)
}

func (r *runner) begin(q Req, m *Message) (err error) {
	slot := m.slot(q.Side)
	p := r.slots[q.Side][slot]
	if p == nil {
		p = &pending{}
		if q.Side == SendSide {
			p.buf = kinds[m.Kind].make(m.Len)
		} else {
			p.buf = kinds[m.Kind].make(m.Cap)
		}
		if slot != 0 {
			if err := r.persist(q.Side, m, p); err != nil {
				return failed(err)
			}
			r.slots[q.Side][slot] = p
		}
	}
	r.reqs[q] = p
	if q.Side == SendSide {
		p.buf.fill(m.seed())
	} else {
		p.buf.fill(untouched)
	}
	if slot != 0 {
		return failed(p.req.Start())
	}
	if q.Side == SendSide {
		c, dst := r.comm(m.Comm, m.To)
		p.req, err = p.buf.isend(m.Mode, c, dst, m.Tag)
	} else {
		c, src, tag := r.wanted(m)
		p.req, err = p.buf.irecv(c, src, tag)
	}
	return failed(err)
}

func (r *runner) persist(side Side, m *Message, p *pending) (err error) {
	if side == SendSide {
		c, dst := r.comm(m.Comm, m.To)
		p.req, err = p.buf.sendInit(m.Mode, c, dst, m.Tag)
		return err
	}
	c, src, tag := r.wanted(m)
	p.req, err = p.buf.recvInit(c, src, tag)
	return err
}

func (r *runner) send(m *Message) error {
	c, dst := r.comm(m.Comm, m.To)
	buf := m.content(m.Len)
	err := buf.send(m.Mode, c, dst, m.Tag)
	buf.fill(untouched) // the buffer is ours again
	if err != nil {
		return failed(err)
	}
	return r.matched(m)
}

// recv receives m, or another message of its family, and blocks.
func (r *runner) recv(m *Message) error {
	c, src, tag := r.wanted(m)
	buf := m.Kind.blank(m.Cap)
	switch m.By {
	case ByProbe, ByIprobe:
		return r.recvProbed(m, buf, c, src, tag)
	case ByMprobe, ByImprobe:
		return r.recvTaken(m, buf, c, src, tag)
	default: // ByRecv
		st, err := buf.recv(c, src, tag)
		return r.received(m, buf, st, err)
	}
}

func (r *runner) recvProbed(m *Message, buf vector, c *mpi.Comm, src, tag int) error {
	var probed mpi.Status
	var err error
	if m.By == ByProbe {
		probed, err = mpi.Probe(c, src, tag)
	} else {
		err = r.again(func() (found bool, err error) {
			found, probed, err = mpi.Iprobe(c, src, tag)
			return found, err
		})
	}
	if err != nil {
		return failed(err)
	}
	st, err := buf.recv(c, probed.Source, probed.Tag)
	return r.receivedProbed(m, buf, probed, st, err)
}

func (r *runner) recvTaken(m *Message, buf vector, c *mpi.Comm, src, tag int) error {
	var probed, st mpi.Status
	var msg *mpi.Message
	var err error
	if m.By == ByMprobe {
		msg, probed, err = mpi.Mprobe(c, src, tag)
	} else {
		err = r.again(func() (found bool, err error) {
			msg, probed, err = mpi.Improbe(c, src, tag)
			return msg != nil, err
		})
	}
	if err != nil {
		return failed(err)
	}
	if m.By == ByMprobe {
		st, err = buf.mrecv(msg)
		return r.receivedProbed(m, buf, probed, st, err)
	}
	q, err := buf.imrecv(msg)
	if err == nil {
		st, err = q.Wait()
	}
	return r.receivedProbed(m, buf, probed, st, err)
}

func (r *runner) receivedProbed(m *Message, buf vector, probed, st mpi.Status, err error) error {
	if err := r.received(m, buf, st, err); err != nil {
		return err
	}
	n, whole := buf.count(probed)
	got := r.rec.Deliveries[len(r.rec.Deliveries)-1]
	want := got.Count
	if got.Truncated {
		want = m.Len
	}
	if probed.Source != st.Source || probed.Tag != st.Tag || n != want || !whole {
		return mismatch("%s gave source %d, tag %d, %d elements, but it is source %d, tag %d, %d elements",
			m.By, probed.Source, probed.Tag, n, st.Source, st.Tag, want)
	}
	return nil
}

func (r *runner) received(m *Message, buf vector, st mpi.Status, err error) error {
	truncated := err != nil && mpi.ErrorClass(err) == mpierr.Truncate
	if err != nil && !truncated {
		return failed(err)
	}
	n, whole := buf.count(st)
	if !whole || n > buf.size() {
		return mismatch("message %d: %d bytes are no elements of %s, or more than %d", m.ID, st.Bytes(), m.Kind, buf.size())
	}
	got := Delivery{Msg: m.ID, Source: st.Source, Tag: st.Tag, Count: n, Truncated: truncated, Sum: buf.sum(n)}
	r.rec.Deliveries = append(r.rec.Deliveries, got)
	if d := buf.slice(n, buf.size()).unlike(untouched + uint64(n)); d != "" {
		return mismatch("message %d: what is behind its %d elements has changed: %s", m.ID, n, d)
	}
	return r.a.judge(r.comms, &got, buf)
}

func (r *runner) exchange(s Exchange) error {
	var out, in *Message
	for _, id := range s.Msgs {
		m := r.a.byID[id].m
		if m.From == r.me {
			out = m
		}
		if m.To == r.me {
			in = m
		}
	}
	if in != nil || out != nil {
		r.log(s)
	}
	switch {
	case in == nil && out == nil:
		return nil
	case in == nil:
		return r.send(out)
	case out == nil:
		return r.recv(in)
	}
	c, dst := r.comm(out.Comm, out.To)
	_, src, tag := r.wanted(in)
	buf := out.content(out.Len)
	if s.Replace {
		st, err := buf.replace(c, dst, out.Tag, src, tag)
		return r.replaced(out, in, buf, st, err)
	}
	to := in.Kind.blank(in.Cap)
	st, err := buf.sendrecv(c, dst, out.Tag, to, src, tag)
	return r.received(in, to, st, err)
}

// replaced checks a buffer in which in has replaced out: the rest of out must be unchanged.
func (r *runner) replaced(out, in *Message, buf vector, st mpi.Status, err error) error {
	n, _ := buf.count(st)
	if n <= buf.size() {
		if d := buf.slice(n, buf.size()).unlike(out.seed() + uint64(n)); d != "" {
			return mismatch("message %d: what is behind its %d elements has changed: %s", in.ID, n, d)
		}
		blank := in.Kind.blank(in.Cap)
		blank.copy(0, buf.slice(0, n))
		buf = blank
	}
	return r.received(in, buf, st, err)
}

func (r *runner) null(s Null) error {
	c := r.open[s.Comm]
	buf := Int32.blank(4)
	st := mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag} // status of the sends
	var err error
	var q mpi.Request
	switch s.What {
	case NullSend:
		err = buf.send(Synchronous, c, mpi.ProcNull, 1)
	case NullRecv:
		st, err = buf.recv(c, mpi.ProcNull, 1)
	case NullIsend:
		if q, err = buf.isend(Standard, c, mpi.ProcNull, 1); err == nil {
			_, err = q.Wait()
		}
	case NullIrecv:
		if q, err = buf.irecv(c, mpi.ProcNull, mpi.AnyTag); err == nil {
			st, err = q.Wait()
		}
	case NullSendrecv:
		st, err = buf.sendrecv(c, mpi.ProcNull, 1, Int32.blank(1), mpi.ProcNull, 1)
	case NullProbe:
		st, err = mpi.Probe(c, mpi.ProcNull, 1)
	case NullMprobe:
		var msg *mpi.Message
		if msg, st, err = mpi.Mprobe(c, mpi.ProcNull, 1); err == nil {
			st, err = buf.mrecv(msg)
		}
	}
	switch {
	case err != nil:
		return failed(err)
	case st.Source != mpi.ProcNull || st.Tag != mpi.AnyTag || st.Bytes() != 0 || st.Cancelled():
		return mismatch("the status is source %d, tag %d, %d bytes", st.Source, st.Tag, st.Bytes())
	case buf.unlike(untouched) != "":
		return mismatch("the buffer has changed: %s", buf.unlike(untouched))
	}
	return nil
}
