package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Probe blocks until a message from src with tag could be received, and tells
// about it without receiving it.
func Probe(c *Comm, src, tag int) (Status, error) { return outStatus(p2p.Probe(c.in(), src, tag)) }

// Iprobe tells whether a message from src with tag could be received now.
func Iprobe(c *Comm, src, tag int) (found bool, st Status, err error) {
	return outBoolStatus(p2p.Iprobe(c.in(), src, tag))
}

// Message is a message that Mprobe or Improbe has taken out of the queue: only
// Mrecv or Imrecv with it can receive it.
type Message p2p.Message

// Mprobe blocks until a message from src with tag could be received, and
// reserves it for the caller.
func Mprobe(c *Comm, src, tag int) (*Message, Status, error) {
	return outMessageStatus(p2p.Mprobe(c.in(), src, tag))
}

// Improbe is Mprobe without waiting; the message is nil where there is none.
func Improbe(c *Comm, src, tag int) (*Message, Status, error) {
	return outMessageStatus(p2p.Improbe(c.in(), src, tag))
}

// Mrecv receives the message m, which is used up, into buf.
func Mrecv[T Type](m *Message, buf []T) (Status, error) { return outStatus(p2p.Mrecv(m.in(), buf)) }

// Imrecv begins to receive the message m, which is used up, into buf.
func Imrecv[T Type](m *Message, buf []T) (Request, error) { return outRequest(p2p.Imrecv(m.in(), buf)) }

// Recv receives the message, which is used up, into b.
func (m *Message) Recv(b Buffer) (Status, error) { return outStatus(m.in().Recv(proc.Buffer(b))) }

// Irecv begins to receive the message, which is used up, into b.
func (m *Message) Irecv(b Buffer) (Request, error) { return outRequest(m.in().Irecv(proc.Buffer(b))) }

// NoProc tells whether the message is that from ProcNull, which is received
// without anything being stored (MPI_MESSAGE_NO_PROC).
func (m *Message) NoProc() bool { return m.in().NoProc() }

// Recv receives a message from rank src (or AnySource) with tag (or AnyTag) into
// buf and blocks until it is there. A message longer than buf fills buf and is
// ErrTruncate.
func Recv[T Type](c *Comm, buf []T, src, tag int) (Status, error) {
	st, err := c.in().RecvElements(datatype.Bytes(buf), datatype.KindOf[T](), src, tag)
	return Status(st), c.in().Failed("Recv", err)
}

// Irecv begins a Recv. buf belongs to the library until the request is complete.
func Irecv[T Type](c *Comm, buf []T, src, tag int) (Request, error) {
	q, err := c.in().IrecvElements(proc.ByIrecv, datatype.Bytes(buf), datatype.KindOf[T](), src, tag)
	return Request(q), c.in().Failed("Irecv", err)
}

// Recv receives a message from rank src (or AnySource) with tag (or AnyTag) into
// b and blocks until it is there. A message longer than b fills b and is
// ErrTruncate.
func (c *Comm) Recv(b Buffer, src, tag int) (Status, error) {
	return outStatus(p2p.Recv(c.in(), proc.Buffer(b), src, tag))
}

// Irecv begins a Recv. b belongs to the library until the request is complete.
func (c *Comm) Irecv(b Buffer, src, tag int) (Request, error) {
	return outRequest(p2p.Irecv(c.in(), proc.Buffer(b), src, tag))
}
