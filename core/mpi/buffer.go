package mpi

import (
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
)

// BsendOverhead is what each Bsend takes of the attached memory besides its
// data, in bytes (MPI_BSEND_OVERHEAD).
const BsendOverhead = proc.BsendOverhead

// BufferAttach gives size bytes of memory to Bsend. A Bsend takes its message's
// size and BsendOverhead out of them until the message has left. One buffer can
// be attached at a time.
func BufferAttach(size int) error { return proc.BufferAttach(size) }

// BufferDetach blocks until all messages of Bsends have left, takes the memory
// back and tells how much it was.
func BufferDetach() (size int, err error) { return proc.BufferDetach() }

// BufferFlush blocks until all messages of Bsends have left (MPI_Buffer_flush).
func BufferFlush() error { return proc.BufferFlush() }

// BufferIflush begins a BufferFlush.
func BufferIflush() (Request, error) { return outRequest(proc.BufferIflush()) }

// UseMemoryCheck is for programs whose memory is not Go's, so that what they give for a message
// may not be there: there tells whether all of b can be written, and changes nothing. It is
// called after Init, before anything else. Where there is no memory a receive fails with
// ErrBuffer when its message comes, which is dropped, and the link goes on.
func UseMemoryCheck(there func(b []byte) bool) { proc.UseMemoryCheck(there) }

// TypePacked is the datatype of what Pack makes, a byte each (MPI_PACKED).
func TypePacked() *Datatype { return p2p.TypePacked() }

// Pack puts the items of b into out, from position on, in a form that all procs
// of the job can unpack, and gives the position behind them. Where they do not fit
// nothing is written.
func (c *Comm) Pack(b Buffer, out []byte, position int64) (int64, error) {
	return p2p.Pack(c.in(), proc.Buffer(b), out, position)
}

// Unpack is the inverse of Pack: it fills the items of b.
func (c *Comm) Unpack(in []byte, position int64, b Buffer) (int64, error) {
	return p2p.Unpack(c.in(), in, position, proc.Buffer(b))
}

// PackSize gives how many bytes Pack takes for count items.
func (c *Comm) PackSize(count int, t *Datatype) (int64, error) { return p2p.PackSize(c.in(), count, t) }

// PackExternal puts the items of b into out, from position on, in the
// representation datarep, of which "external32" is known.
func PackExternal(datarep string, b Buffer, out []byte, position int64) (int64, error) {
	return p2p.PackExternal(datarep, proc.Buffer(b), out, position)
}

// UnpackExternal is the inverse of PackExternal.
func UnpackExternal(datarep string, in []byte, position int64, b Buffer) (int64, error) {
	return p2p.UnpackExternal(datarep, in, position, proc.Buffer(b))
}

// PackExternalSize gives how many bytes PackExternal takes for count items.
func PackExternalSize(datarep string, count int, t *Datatype) (int64, error) {
	return p2p.PackExternalSize(datarep, count, t)
}

// Unlimited is the size of a buffer that any number of messages fit in
// (MPI_BUFFER_AUTOMATIC).
const Unlimited = proc.Unlimited

// SendBuffer is memory that the buffered sends of some communicators take from,
// instead of that of BufferAttach, while there is some attached.
type SendBuffer proc.SendBuffer

// NewSendBuffer makes one for the communicators that it is to Serve. Nothing is
// attached to it.
func NewSendBuffer() (*SendBuffer, error) { return outSendBuffer(proc.NewSendBuffer()) }

// SendBuffer gives what the buffered sends of c alone take from
// (MPI_Comm_attach_buffer). It ends with c.
func (c *Comm) SendBuffer() (*SendBuffer, error) { return outSendBuffer(c.in().SendBuffer()) }

// Serve has the buffered sends of c take from b while c has nothing attached of its own
// (MPI_Session_attach_buffer).
func (b *SendBuffer) Serve(c *Comm) error { return b.in().Serve(c.in()) }

// Attach gives size bytes of memory to b, as BufferAttach.
func (b *SendBuffer) Attach(size int) error { return b.in().Attach(size) }

// Detach is BufferDetach.
func (b *SendBuffer) Detach() (size int, err error) { return b.in().Detach() }

// Flush is BufferFlush.
func (b *SendBuffer) Flush() error { return b.in().Flush() }

// Iflush begins a Flush.
func (b *SendBuffer) Iflush() Request { return Request(b.in().Iflush()) }

// Datatype says what the items of a Buffer are: a basic type or one derived from
// others. nil is MPI_DATATYPE_NULL.
type Datatype = datatype.Type

// Buffer is memory that messages come from and go to: count items of a datatype.
// It is a value and costs no allocation; the memory stays the caller's.
type Buffer proc.Buffer

// InPlace is the Buffer that stands for the other one of a collective operation
// (MPI_IN_PLACE).
var InPlace = Buffer(proc.InPlace)

// Of is all of s.
func Of[T Type](s []T) Buffer { return Buffer(proc.Of(s)) }

// Typed is count items of datatype t, the first of which begins where s does.
// Calls fail with ErrBuffer if the items touch memory outside s. T must not have
// pointers: what arrives is any bytes.
func Typed[T any](s []T, count int, t *Datatype) Buffer { return Buffer(proc.Typed(s, count, t)) }

// At is count items of datatype t at an address. That the items are memory of
// the program is for the caller to know. It is for bindings to other languages.
func At(p unsafe.Pointer, count int, t *Datatype) Buffer { return Buffer(proc.At(p, count, t)) }

// Count gives how many items b has.
func (b Buffer) Count() int { return proc.Buffer(b).Count() }

// Datatype gives what b's items are.
func (b Buffer) Datatype() *Datatype { return proc.Buffer(b).Datatype() }
