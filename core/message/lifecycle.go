package message

func (e *operations) newRequest() *Request {
	r := e.requests.get()
	r.entry.Value = r
	r.from = NoPeer
	r.busy, r.freed = true, false
	return r
}

func (e *operations) end(r *Request, err error) {
	e.ids.drop(r)
	if r.kind == kindSend {
		e.sends--
		r.giveRoom()
		if r.pooled {
			e.buffers.put(r.data)
			r.pooled = false
		}
	}
	r.data, r.msg, r.state, r.busy = nil, nil, stateEnded, false
	if !r.done {
		if err != nil {
			r.status.Err = err
		}
		r.finish(e)
	} else {
		e.events++
	}
	if r.freed {
		e.recycle(r)
	}
}

// finish shows the user that the request is done.
func (r *Request) finish(e *operations) {
	r.done = true
	e.completed++
	e.events++
}

// Release returns the request to the engine; the caller must not use it any more. A request that is
// not done continues until it is, as after MPI_Request_free (MPI-4.1, 3.7.3).
func (e *operations) Release(r *Request) {
	if r.freed {
		panic("message: request is released already")
	}
	r.freed = true
	r.gen++
	r.User = nil
	if !r.busy {
		e.recycle(r)
	}
}

func (e *operations) recycle(r *Request) {
	if r.scattered != nil {
		e.putApart(r)
	}
	r.course = course{}
	r.entry.Own = false
	e.requests.put(r)
}
