package message

// sendSelf sends to this proc itself, without a link. A short message is copied if no receive is
// posted, and the send is done at once; a synchronous or long send waits for the receive (MPI-4.1,
// 3.4).
func (e *matcher) sendSelf(s *Request) {
	key := e.key(&s.env, e.self.index)
	if r, ok := e.posted.Match(key); ok {
		e.begin(r, e.self, key, s.total)
		r.count, r.dtype = s.count, s.dtype
		e.copySelf(s, r)
		return
	}
	m := e.newMessage(e.self, s.total)
	m.whole, m.count, m.dtype = true, s.count, s.dtype
	e.unexpected.Add(&m.entry, key)
	e.events++
	if s.mode == Synchronous || s.total > e.own.maxData {
		m.send = s
		s.state, s.msg = stateWaiting, m
		return
	}
	m.buf = e.buffers.get(int(s.total))
	if s.scattered == nil {
		copy(m.buf, s.data)
	} else if s.total > 0 {
		s.pack(m.buf)
	}
	e.end(s, nil)
}

func (e *matcher) copySelf(s, r *Request) {
	e.move(s, r)
	e.end(s, nil)
	e.end(r, nil)
}
