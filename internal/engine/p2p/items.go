package p2p

import (
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Sends and receives of Buffers. Package proc has the functions for elements of one kind without
// gaps.

func Send(c *proc.Comm, mode message.Mode, b proc.Buffer, dst, tag int) error {
	if mem, k, ok := b.Plain(); ok {
		return c.SendElements(mode, mem, k, dst, tag, false)
	}
	if err := fits(c, &b); err != nil {
		return err
	}
	peer, none, err := c.PartnerOf(dst, tag)
	if none || err != nil {
		return err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	out := p.Data.Items(peer, b)
	return p.Send(peer, c.Envelope(tag), mode, &out)
}

func Isend(c *proc.Comm, fn proc.RequestFunc, mode message.Mode, b proc.Buffer, dst, tag int) (proc.Request, error) {
	if err := fits(c, &b); err != nil {
		return proc.Request{}, err
	}
	return isendChecked(c, fn, mode, b, dst, tag)
}

func Recv(c *proc.Comm, b proc.Buffer, src, tag int) (proc.Status, error) {
	if mem, k, ok := b.Plain(); ok {
		return c.RecvElements(mem, k, src, tag, false)
	}
	if err := fits(c, &b); err != nil {
		return proc.Status{}, err
	}
	env, from, none, err := c.RecvEnvelope(src, tag)
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

func Irecv(c *proc.Comm, b proc.Buffer, src, tag int) (proc.Request, error) {
	if err := fits(c, &b); err != nil {
		return proc.Request{}, err
	}
	return startRecv(c, proc.ByIrecv, b, src, tag)
}

func fits(c *proc.Comm, b *proc.Buffer) error {
	if c == nil {
		return proc.NoComm()
	}
	return b.Check()
}

// isendChecked begins to send a Buffer that has been checked. fn is the function of MPI that was
// called.
func isendChecked(c *proc.Comm, fn proc.RequestFunc, mode message.Mode, b proc.Buffer, dst, tag int) (proc.Request, error) {
	peer, none, err := c.PartnerOf(dst, tag)
	switch {
	case err != nil:
		return proc.Request{}, err
	case none:
		return proc.NoPartner(c, fn), nil
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	out := p.Data.Items(peer, b)
	return c.Active(fn, p.Isend(peer, c.Envelope(tag), mode, &out, false), out.Items), nil
}

// startRecv begins to receive into a Buffer that has been checked. fn is the function of MPI that
// was called.
func startRecv(c *proc.Comm, fn proc.RequestFunc, b proc.Buffer, src, tag int) (proc.Request, error) {
	env, from, none, err := c.RecvEnvelope(src, tag)
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
