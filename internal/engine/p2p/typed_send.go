package p2p

import (
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
)

func Send(c *proc.Comm, b proc.Buffer, dst, tag int) error {
	return c.Failed("Send", sendItems(c, message.Standard, b, dst, tag))
}

func Ssend(c *proc.Comm, b proc.Buffer, dst, tag int) error {
	return c.Failed("Ssend", sendItems(c, message.Synchronous, b, dst, tag))
}

func Bsend(c *proc.Comm, b proc.Buffer, dst, tag int) error {
	return c.Failed("Bsend", sendItems(c, message.Buffered, b, dst, tag))
}

func Rsend(c *proc.Comm, b proc.Buffer, dst, tag int) error {
	return c.Failed("Rsend", sendItems(c, message.Ready, b, dst, tag))
}

func Isend(c *proc.Comm, b proc.Buffer, dst, tag int) (proc.Request, error) {
	q, err := isendItems(c, proc.ByIsend, message.Standard, b, dst, tag)
	return q, c.Failed("Isend", err)
}

func Issend(c *proc.Comm, b proc.Buffer, dst, tag int) (proc.Request, error) {
	q, err := isendItems(c, proc.ByIssend, message.Synchronous, b, dst, tag)
	return q, c.Failed("Issend", err)
}

func Ibsend(c *proc.Comm, b proc.Buffer, dst, tag int) (proc.Request, error) {
	q, err := isendItems(c, proc.ByIbsend, message.Buffered, b, dst, tag)
	return q, c.Failed("Ibsend", err)
}

func Irsend(c *proc.Comm, b proc.Buffer, dst, tag int) (proc.Request, error) {
	q, err := isendItems(c, proc.ByIrsend, message.Ready, b, dst, tag)
	return q, c.Failed("Irsend", err)
}

// sendItems is send for Buffers.
func sendItems(c *proc.Comm, mode message.Mode, b proc.Buffer, dst, tag int) error {
	if mem, k, ok := b.Plain(); ok {
		return c.SendElements(mode, mem, k, dst, tag)
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

// isendItems is isend for Buffers.
func isendItems(c *proc.Comm, fn proc.Maker, mode message.Mode, b proc.Buffer, dst, tag int) (proc.Request, error) {
	if err := fits(c, &b); err != nil {
		return proc.Request{}, err
	}
	return startSend(c, fn, mode, b, dst, tag)
}

// fits refuses a Buffer that no message on c can be made of.
func fits(c *proc.Comm, b *proc.Buffer) error {
	if c == nil {
		return proc.NoComm()
	}
	return b.Check()
}

// startSend begins to send a Buffer that has been checked.
func startSend(c *proc.Comm, fn proc.Maker, mode message.Mode, b proc.Buffer, dst, tag int) (proc.Request, error) {
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
