//go:build cgo && !386 && !arm

package main

import "C"

import "github.com/openimpi/impi/core/mpi"

// position is where the program keeps how far it has packed: an int, or an MPI_Count
// if which is 1.
func position(p uintptr, which int32) (int64, error) {
	if which != 0 {
		at, err := result[int64]("position", p)
		if err != nil {
			return 0, err
		}
		return *at, nil
	}
	at, err := result[int32]("position", p)
	if err != nil {
		return 0, err
	}
	return int64(*at), nil
}

//export abiPack
func abiPack(in uintptr, count int64, t, out uintptr, size int64, pos, c uintptr, which int32) int32 {
	return onComm("Pack", which, c, func(c *commObject) error {
		b, err := buffer(in, count, t)
		if err != nil {
			return err
		}
		to, err := array[byte]("outbuf", out, int(size))
		if err != nil {
			return err
		}
		at, err := position(pos, which)
		if err != nil {
			return err
		}
		if at, err = c.Pack(b, to, at); err != nil {
			return err
		}
		return putWide("position", pos, which, at)
	})
}

//export abiUnpack
func abiUnpack(in uintptr, size int64, pos, out uintptr, count int64, t, c uintptr, which int32) int32 {
	return onComm("Unpack", which, c, func(c *commObject) error {
		b, err := buffer(out, count, t)
		if err != nil {
			return err
		}
		from, err := array[byte]("inbuf", in, int(size))
		if err != nil {
			return err
		}
		at, err := position(pos, which)
		if err != nil {
			return err
		}
		if at, err = c.Unpack(from, at, b); err != nil {
			return err
		}
		return putWide("position", pos, which, at)
	})
}

//export abiPackSize
func abiPackSize(count int64, t, c, out uintptr, which int32) int32 {
	return onComm("Pack_size", which, c, func(c *commObject) error {
		dt, err := takeType("datatype", t)
		if err != nil {
			return err
		}
		n, err := c.PackSize(int(count), dt)
		if err != nil {
			return err
		}
		return putWide("size", out, which, n)
	})
}

//export abiPackExternal
func abiPackExternal(rep, in uintptr, count int64, t, out uintptr, size int64, pos uintptr, which int32) int32 {
	return on("Pack_external", which, func() error {
		name, err := text("datarep", rep, 128)
		if err != nil {
			return err
		}
		b, err := buffer(in, count, t)
		if err != nil {
			return err
		}
		to, err := array[byte]("outbuf", out, int(size))
		if err != nil {
			return err
		}
		at, err := position(pos, 1)
		if err != nil {
			return err
		}
		if at, err = mpi.PackExternal(name, b, to, at); err != nil {
			return err
		}
		return put("position", pos, at)
	})
}

//export abiUnpackExternal
func abiUnpackExternal(rep, in uintptr, size int64, pos, out uintptr, count int64, t uintptr, which int32) int32 {
	return on("Unpack_external", which, func() error {
		name, err := text("datarep", rep, 128)
		if err != nil {
			return err
		}
		b, err := buffer(out, count, t)
		if err != nil {
			return err
		}
		from, err := array[byte]("inbuf", in, int(size))
		if err != nil {
			return err
		}
		at, err := position(pos, 1)
		if err != nil {
			return err
		}
		if at, err = mpi.UnpackExternal(name, from, at, b); err != nil {
			return err
		}
		return put("position", pos, at)
	})
}

//export abiPackExternalSize
func abiPackExternalSize(rep uintptr, count int64, t, out uintptr, which int32) int32 {
	return on("Pack_external_size", which, func() error {
		name, err := text("datarep", rep, 128)
		if err != nil {
			return err
		}
		dt, err := takeType("datatype", t)
		if err != nil {
			return err
		}
		n, err := mpi.PackExternalSize(name, int(count), dt)
		if err != nil {
			return err
		}
		return put("size", out, n)
	})
}
