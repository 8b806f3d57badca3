package p2p

import "github.com/openimpi/impi/internal/engine/proc"

func Recv(c *proc.Comm, b proc.Buffer, src, tag int) (proc.Status, error) {
	st, err := recvItems(c, b, src, tag)
	return st, c.Failed("Recv", err)
}

func Irecv(c *proc.Comm, b proc.Buffer, src, tag int) (proc.Request, error) {
	q, err := irecvItems(c, proc.ByIrecv, b, src, tag)
	return q, c.Failed("Irecv", err)
}

// recvItems is recv for Buffers.
func recvItems(c *proc.Comm, b proc.Buffer, src, tag int) (proc.Status, error) {
	if mem, k, ok := b.Plain(); ok {
		return c.RecvElements(mem, k, src, tag)
	}
	if err := fits(c, &b); err != nil {
		return proc.Status{}, err
	}
	env, from, none, err := c.Wanted(src, tag)
	switch {
	case err != nil:
		return proc.Status{}, err
	case none:
		return proc.ProcNullStatus, nil
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	in := p.Data.Items(from, b)
	return p.Recv(env, from, &in)
}

// irecvItems is irecv for Buffers.
func irecvItems(c *proc.Comm, fn proc.Maker, b proc.Buffer, src, tag int) (proc.Request, error) {
	if err := fits(c, &b); err != nil {
		return proc.Request{}, err
	}
	return startRecv(c, fn, b, src, tag)
}

// startRecv begins to receive into a Buffer that has been checked.
func startRecv(c *proc.Comm, fn proc.Maker, b proc.Buffer, src, tag int) (proc.Request, error) {
	env, from, none, err := c.Wanted(src, tag)
	switch {
	case err != nil:
		return proc.Request{}, err
	case none:
		return proc.NoPartner(c, fn), nil
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	in := p.Data.Items(from, b)
	return c.Active(fn, p.Irecv(env, from, &in), in.Items), nil
}
