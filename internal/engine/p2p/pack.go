package p2p

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Pack and Unpack (MPI-4.1, 5.2): the items of several Buffers in one piece of memory, which is
// sent as items of TypePacked and unpacked by the receiver.

func Pack(c *proc.Comm, b proc.Buffer, out []byte, position int64) (int64, error) {
	err := packable(c, &b)
	if err == nil {
		position, err = b.Datatype().PackAt(packedAs(c.Process()), out, position, b.Memory(), b.Count())
	}
	return position, err
}

func Unpack(c *proc.Comm, in []byte, position int64, b proc.Buffer) (int64, error) {
	err := packable(c, &b)
	if err == nil {
		position, err = b.Datatype().UnpackAt(packedAs(c.Process()), in, position, b.Memory(), b.Count())
	}
	return position, err
}

func PackSize(c *proc.Comm, count int, t *proc.Datatype) (int64, error) {
	b := proc.At(nil, count, t)
	err := c.Usable()
	if err == nil {
		err = t.Check()
	}
	switch {
	case err != nil:
	case count < 0:
		err = fmt.Errorf("%w: %d", datatype.ErrCount, count)
	default:
		return b.Size(packedAs(c.Process())), nil
	}
	return 0, err
}

func packable(c *proc.Comm, b *proc.Buffer) error {
	if err := c.Usable(); err != nil {
		return err
	}
	return b.Check()
}

// packedAs returns the representation of packed data: memory as it is if all procs have the same,
// the representation of the other libraries if they have one, or else external32.
func packedAs(p *proc.Process) datatype.Representation {
	if p.Data.Homogeneous {
		return datatype.Native
	}
	if p.Members.Common() != datatype.External32 {
		return p.Members.Common() // other libraries can unpack only their own form
	}
	as := datatype.Native
	for _, rep := range p.Data.Kinds {
		switch rep = rep.Exact(); {
		case rep == datatype.Native, rep == as:
		case as == datatype.Native:
			as = rep
		default:
			return datatype.External32
		}
	}
	return as
}

func PackExternal(datarep string, b proc.Buffer, out []byte, position int64) (int64, error) {
	err := b.Check()
	if err == nil {
		position, err = b.Datatype().PackExternal(datarep, out, position, b.Memory(), b.Count())
	}
	return position, err
}

func UnpackExternal(datarep string, in []byte, position int64, b proc.Buffer) (int64, error) {
	err := b.Check()
	if err == nil {
		position, err = b.Datatype().UnpackExternal(datarep, in, position, b.Memory(), b.Count())
	}
	return position, err
}
