package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Send sends buf to rank dst of c and blocks until buf can be used again, which
// may be before the message is received. MPI standard mode.
func Send[T Type](c *Comm, buf []T, dst, tag int) error {
	return c.in().Failed("Send", c.in().SendElements(message.Standard, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag))
}

// Ssend is Send in synchronous mode: it also waits until the receive has begun.
func Ssend[T Type](c *Comm, buf []T, dst, tag int) error {
	return c.in().Failed("Ssend", c.in().SendElements(message.Synchronous, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag))
}

// Bsend is Send in buffered mode: it copies buf to the memory that BufferAttach
// announced and returns at once. message.ErrBuffer means that it did not fit.
func Bsend[T Type](c *Comm, buf []T, dst, tag int) error {
	return c.in().Failed("Bsend", c.in().SendElements(message.Buffered, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag))
}

// Rsend is Send in ready mode: the program promises that the receive has been
// posted. The promise is not needed here.
func Rsend[T Type](c *Comm, buf []T, dst, tag int) error {
	return c.in().Failed("Rsend", c.in().SendElements(message.Ready, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag))
}

// Isend begins a Send. buf must not be changed until the request is complete.
func Isend[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	q, err := c.in().IsendElements(proc.ByIsend, message.Standard, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag)
	return Request(q), c.in().Failed("Isend", err)
}

// Issend begins an Ssend. buf must not be changed until the request is complete.
func Issend[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	q, err := c.in().IsendElements(proc.ByIssend, message.Synchronous, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag)
	return Request(q), c.in().Failed("Issend", err)
}

// Ibsend begins a Bsend. buf can be used again at once.
func Ibsend[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	q, err := c.in().IsendElements(proc.ByIbsend, message.Buffered, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag)
	return Request(q), c.in().Failed("Ibsend", err)
}

// Irsend begins an Rsend. buf must not be changed until the request is complete.
func Irsend[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	q, err := c.in().IsendElements(proc.ByIrsend, message.Ready, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag)
	return Request(q), c.in().Failed("Irsend", err)
}

// Sendrecv sends sbuf to dst and receives rbuf from src, both at a time, so that
// neighbours that exchange cannot block each other.
func Sendrecv[T, U Type](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) (Status, error) {
	return outStatus(p2p.Sendrecv(c.in(), sbuf, dst, stag, rbuf, src, rtag))
}

// SendrecvReplace is Sendrecv with one buffer: what it holds is sent, and what
// is received replaces it.
func SendrecvReplace[T Type](c *Comm, buf []T, dst, stag, src, rtag int) (Status, error) {
	return outStatus(p2p.SendrecvReplace(c.in(), buf, dst, stag, src, rtag))
}

// Isendrecv begins a Sendrecv. The status of the request is that of the receive.
func Isendrecv[T, U Type](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) (Request, error) {
	return outRequest(p2p.Isendrecv(c.in(), sbuf, dst, stag, rbuf, src, rtag))
}

// IsendrecvReplace begins a SendrecvReplace.
func IsendrecvReplace[T Type](c *Comm, buf []T, dst, stag, src, rtag int) (Request, error) {
	return outRequest(p2p.IsendrecvReplace(c.in(), buf, dst, stag, src, rtag))
}

// Sendrecv sends out to dst and receives in from src, both at a time, so that
// neighbours that exchange cannot block each other.
func (c *Comm) Sendrecv(out Buffer, dst, stag int, in Buffer, src, rtag int) (Status, error) {
	return outStatus(p2p.SendrecvItems(c.in(), proc.Buffer(out), dst, stag, proc.Buffer(in), src, rtag))
}

// SendrecvReplace is Sendrecv with one Buffer: what it holds is sent, and what is
// received replaces it.
func (c *Comm) SendrecvReplace(b Buffer, dst, stag, src, rtag int) (Status, error) {
	return outStatus(p2p.SendrecvReplaceItems(c.in(), proc.Buffer(b), dst, stag, src, rtag))
}

// Isendrecv begins a Sendrecv. The status of the request is that of the receive.
func (c *Comm) Isendrecv(out Buffer, dst, stag int, in Buffer, src, rtag int) (Request, error) {
	return outRequest(p2p.IsendrecvItems(c.in(), proc.Buffer(out), dst, stag, proc.Buffer(in), src, rtag))
}

// IsendrecvReplace begins a SendrecvReplace.
func (c *Comm) IsendrecvReplace(b Buffer, dst, stag, src, rtag int) (Request, error) {
	return outRequest(p2p.IsendrecvReplaceItems(c.in(), proc.Buffer(b), dst, stag, src, rtag))
}

// Send sends b to rank dst and blocks until its memory can be used again, which
// may be before the message is received. MPI standard mode.
func (c *Comm) Send(b Buffer, dst, tag int) error { return p2p.Send(c.in(), proc.Buffer(b), dst, tag) }

// Ssend is Send in synchronous mode: it also waits until the receive has begun.
func (c *Comm) Ssend(b Buffer, dst, tag int) error {
	return p2p.Ssend(c.in(), proc.Buffer(b), dst, tag)
}

// Bsend is Send in buffered mode: it copies b to the memory that BufferAttach
// announced and returns at once. message.ErrBuffer means that it did not fit.
func (c *Comm) Bsend(b Buffer, dst, tag int) error {
	return p2p.Bsend(c.in(), proc.Buffer(b), dst, tag)
}

// Rsend is Send in ready mode: the program promises that the receive has been
// posted. The promise is not needed here.
func (c *Comm) Rsend(b Buffer, dst, tag int) error {
	return p2p.Rsend(c.in(), proc.Buffer(b), dst, tag)
}

// Isend begins a Send. b must not be changed until the request is complete.
func (c *Comm) Isend(b Buffer, dst, tag int) (Request, error) {
	return outRequest(p2p.Isend(c.in(), proc.Buffer(b), dst, tag))
}

// Issend begins an Ssend. b must not be changed until the request is complete.
func (c *Comm) Issend(b Buffer, dst, tag int) (Request, error) {
	return outRequest(p2p.Issend(c.in(), proc.Buffer(b), dst, tag))
}

// Ibsend begins a Bsend. b can be used again at once.
func (c *Comm) Ibsend(b Buffer, dst, tag int) (Request, error) {
	return outRequest(p2p.Ibsend(c.in(), proc.Buffer(b), dst, tag))
}

// Irsend begins an Rsend. b must not be changed until the request is complete.
func (c *Comm) Irsend(b Buffer, dst, tag int) (Request, error) {
	return outRequest(p2p.Irsend(c.in(), proc.Buffer(b), dst, tag))
}
