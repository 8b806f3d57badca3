package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
)

// Sendrecv sends sbuf to dst and receives rbuf from src, both at a time, so that
// neighbours that exchange cannot block each other.
func Sendrecv[T, U Type](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) (Status, error) {
	return c.Sendrecv(Of(sbuf), dst, stag, Of(rbuf), src, rtag)
}

// SendrecvReplace is Sendrecv with one buffer: what it holds is sent, and what
// is received replaces it.
func SendrecvReplace[T Type](c *Comm, buf []T, dst, stag, src, rtag int) (Status, error) {
	return c.SendrecvReplace(Of(buf), dst, stag, src, rtag)
}

// Isendrecv begins a Sendrecv. The status of the request is that of the receive.
func Isendrecv[T, U Type](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) (Request, error) {
	return c.Isendrecv(Of(sbuf), dst, stag, Of(rbuf), src, rtag)
}

// IsendrecvReplace begins a SendrecvReplace.
func IsendrecvReplace[T Type](c *Comm, buf []T, dst, stag, src, rtag int) (Request, error) {
	return c.IsendrecvReplace(Of(buf), dst, stag, src, rtag)
}

// Sendrecv sends out to dst and receives in from src, both at a time, so that
// neighbours that exchange cannot block each other.
func (c *Comm) Sendrecv(out Buffer, dst, stag int, in Buffer, src, rtag int) (Status, error) {
	st, err := c.sendrecv(swap{out: out, dst: dst, stag: stag, in: in, src: src, rtag: rtag})
	return st, c.failed("Sendrecv", err)
}

// SendrecvReplace is Sendrecv with one Buffer: what it holds is sent, and what is
// received replaces it.
func (c *Comm) SendrecvReplace(b Buffer, dst, stag, src, rtag int) (Status, error) {
	st, err := c.sendrecv(swap{out: b, dst: dst, stag: stag, in: b, src: src, rtag: rtag, replace: true})
	return st, c.failed("SendrecvReplace", err)
}

// Isendrecv begins a Sendrecv. The status of the request is that of the receive.
func (c *Comm) Isendrecv(out Buffer, dst, stag int, in Buffer, src, rtag int) (Request, error) {
	q, err := c.isendrecv("Isendrecv", swap{out: out, dst: dst, stag: stag, in: in, src: src, rtag: rtag})
	return q, c.failed("Isendrecv", err)
}

// IsendrecvReplace begins a SendrecvReplace.
func (c *Comm) IsendrecvReplace(b Buffer, dst, stag, src, rtag int) (Request, error) {
	q, err := c.isendrecv("IsendrecvReplace", swap{out: b, dst: dst, stag: stag, in: b, src: src, rtag: rtag, replace: true})
	return q, c.failed("IsendrecvReplace", err)
}

// swap is what a Sendrecv is to do.
type swap struct {
	out       Buffer
	dst, stag int
	in        Buffer
	src, rtag int
	replace   bool // out and in are the same
}

// twoway is a send and a receive under way, either of which may be missing.
type twoway struct {
	p       *process
	gen     uint32
	s, r    *message.Request
	out, in *stream
}

func (c *Comm) sendrecv(w swap) (Status, error) {
	if c == nil {
		return Status{}, noComm()
	}
	p := c.p
	p.lock()
	defer p.unlock()
	x := twoway{p: p}
	if err := x.begin(c, &w, true); err != nil {
		return Status{}, err
	}
	if x.s != nil {
		p.wait(x.s)
	}
	if x.r != nil {
		p.wait(x.r)
	}
	return x.finish()
}

func (c *Comm) isendrecv(fn string, w swap) (Request, error) {
	if c == nil {
		return Request{}, noComm()
	}
	p := c.p
	p.lock()
	defer p.unlock()
	x := &twoway{p: p}
	if err := x.begin(c, &w, false); err != nil {
		return Request{}, err
	}
	return p.begun(c, fn, x), nil
}

// begin starts what is to be done on c, or nothing if that is in error.
func (x *twoway) begin(c *Comm, w *swap, blocking bool) error {
	peer, noDst, err := c.partner(w.dst, w.stag)
	if err != nil {
		return err
	}
	env, from, noSrc, err := c.wanted(w.src, w.rtag)
	if err != nil {
		return err
	}
	if err = w.out.check(); err == nil {
		err = w.in.check()
	}
	if err != nil {
		return err
	}
	p := x.p
	var out cargo
	if !noDst {
		out = p.items(peer, w.out)
		if w.replace {
			p.detach(&out)
		}
		x.out = out.items
	}
	if !noSrc {
		in := p.items(from, w.in)
		x.r, x.in = p.accept(env, from, &in), in.items
		p.began(x.r)
	}
	if !noDst {
		x.s = p.post(peer, c.envelope(w.stag), message.Standard, &out, blocking)
	}
	return nil
}

// detach makes a cargo independent of the program's memory.
func (p *process) detach(x *cargo) {
	if x.items == nil {
		x.mem = append([]byte(nil), x.mem...)
		return
	}
	x.mem = make([]byte, x.items.buf.size(x.items.rep))
	if len(x.mem) > 0 {
		x.items.Pack(x.mem, 0)
	}
	p.retire(x.items)
	x.items = nil
}

func (x *twoway) generation() uint32 { return x.gen }

func (x *twoway) done() bool {
	return (x.s == nil || x.s.Done()) && (x.r == nil || x.r.Done())
}

func (x *twoway) status() (Status, error) {
	if x.r == nil {
		return procNullStatus, nil
	}
	return x.p.arrived(x.r, x.in), nil
}

func (x *twoway) finish() (st Status, err error) {
	x.gen++
	st = procNullStatus
	var serr error
	if x.s != nil {
		serr = x.p.end(x.s, x.out)
	}
	if x.r != nil {
		st, err = x.p.received(x.r, x.in)
	}
	if err == nil {
		err = serr
	}
	return st, err
}

func (x *twoway) cancel() error {
	return fmt.Errorf("%w: a send and a receive in one cannot be cancelled", ErrRequest)
}

func (x *twoway) free() error {
	x.gen++
	for _, r := range []*message.Request{x.s, x.r} {
		if r != nil {
			x.p.eng.Release(r)
		}
	}
	return nil
}
