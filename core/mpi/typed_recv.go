package mpi

// Recv receives a message from rank src (or AnySource) with tag (or AnyTag) into
// b and blocks until it is there. A message longer than b fills b and is
// ErrTruncate.
func (c *Comm) Recv(b Buffer, src, tag int) (Status, error) {
	st, err := c.recvItems(b, src, tag)
	return st, c.failed("Recv", err)
}

// Irecv begins a Recv. b belongs to the library until the request is complete.
func (c *Comm) Irecv(b Buffer, src, tag int) (Request, error) {
	q, err := c.irecvItems(byIrecv, b, src, tag)
	return q, c.failed("Irecv", err)
}

// recvItems is recv for Buffers.
func (c *Comm) recvItems(b Buffer, src, tag int) (Status, error) {
	if mem, k, ok := b.plain(); ok {
		return c.recv(mem, k, src, tag)
	}
	if err := c.fits(&b); err != nil {
		return Status{}, err
	}
	env, from, none, err := c.wanted(src, tag)
	switch {
	case err != nil:
		return Status{}, err
	case none:
		return procNullStatus, nil
	}
	p := c.p
	p.lock()
	defer p.unlock()
	in := p.items(from, b)
	return p.receiveNow(env, from, &in)
}

// irecvItems is irecv for Buffers.
func (c *Comm) irecvItems(fn maker, b Buffer, src, tag int) (Request, error) {
	if err := c.fits(&b); err != nil {
		return Request{}, err
	}
	return c.startRecv(fn, b, src, tag)
}

// startRecv begins to receive into a Buffer that has been checked.
func (c *Comm) startRecv(fn maker, b Buffer, src, tag int) (Request, error) {
	env, from, none, err := c.wanted(src, tag)
	switch {
	case err != nil:
		return Request{}, err
	case none:
		return Request{c: c, standing: standing{state: procNull, fn: fn}}, nil
	}
	p := c.p
	p.lock()
	defer p.unlock()
	in := p.items(from, b)
	r := p.accept(env, from, &in)
	p.began(r)
	return c.active(fn, r, in.items), nil
}
