package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// Packing puts the items of several Buffers into one piece of memory, which then
// travels as items of TypePacked and is unpacked by the receiver.

// TypePacked is the datatype of what Pack makes, a byte each (MPI_PACKED).
func TypePacked() *Datatype { return datatype.Basic(datatype.Packed) }

// Pack puts the items of b into out, from position on, in a form that all procs
// of the job can unpack, and gives the position behind them. Where they do not fit
// nothing is written.
func (c *Comm) Pack(b Buffer, out []byte, position int64) (int64, error) {
	err := c.packable(&b)
	if err == nil {
		position, err = b.typ.PackAt(c.p.packedAs(), out, position, b.mem, b.count)
	}
	return position, c.failed("Comm.Pack", err)
}

// Unpack is the inverse of Pack: it fills the items of b.
func (c *Comm) Unpack(in []byte, position int64, b Buffer) (int64, error) {
	err := c.packable(&b)
	if err == nil {
		position, err = b.typ.UnpackAt(c.p.packedAs(), in, position, b.mem, b.count)
	}
	return position, c.failed("Comm.Unpack", err)
}

// PackSize gives how many bytes Pack takes for count items.
func (c *Comm) PackSize(count int, t *Datatype) (int64, error) {
	b := Buffer{count: count, typ: t}
	err := c.check()
	if err == nil {
		err = t.Check()
	}
	switch {
	case err != nil:
	case count < 0:
		err = fmt.Errorf("%w: %d", datatype.ErrCount, count)
	default:
		return b.size(c.p.packedAs()), nil
	}
	return 0, c.failed("Comm.PackSize", err)
}

func (c *Comm) packable(b *Buffer) error {
	if err := c.check(); err != nil {
		return err
	}
	return b.check()
}

// packedAs is the representation of packed data: memory as it is, the one that all
// others have, or else external32.
func (p *process) packedAs() datatype.Representation {
	if p.homogeneous {
		return datatype.Native
	}
	if p.roster.common != datatype.External32 {
		return p.roster.common // another library unpacks its own only
	}
	as := datatype.Native
	for _, rep := range p.kinds {
		switch {
		case rep == datatype.Native, rep == as:
		case as == datatype.Native:
			as = rep
		default:
			return datatype.External32
		}
	}
	return as
}

// PackExternal puts the items of b into out, from position on, in the
// representation datarep, of which "external32" is known.
func PackExternal(datarep string, b Buffer, out []byte, position int64) (int64, error) {
	err := b.check()
	if err == nil {
		position, err = b.typ.PackExternal(datarep, out, position, b.mem, b.count)
	}
	return position, failed("PackExternal", err)
}

// UnpackExternal is the inverse of PackExternal.
func UnpackExternal(datarep string, in []byte, position int64, b Buffer) (int64, error) {
	err := b.check()
	if err == nil {
		position, err = b.typ.UnpackExternal(datarep, in, position, b.mem, b.count)
	}
	return position, failed("UnpackExternal", err)
}

// PackExternalSize gives how many bytes PackExternal takes for count items.
func PackExternalSize(datarep string, count int, t *Datatype) (int64, error) {
	n, err := t.PackExternalSize(datarep, count)
	return n, failed("PackExternalSize", err)
}
