//go:build cgo && !386 && !arm

package main

import "C"

import (
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/engine/file"
)

//export abiFileSetView
func abiFileSetView(h uintptr, disp int64, etype, ftype, rep, info uintptr) int32 {
	return onFile("File_set_view", 0, h, func(o *fileObject) error {
		v, err := viewOf(disp, etype, ftype, rep, info)
		return o.SetView(v, err)
	})
}

func viewOf(disp int64, etype, ftype, rep, info uintptr) (v file.View, err error) {
	v.Displacement = disp
	if v.Etype, err = takeType("etype", etype); err != nil {
		return v, err
	}
	if v.Filetype, err = takeType("filetype", ftype); err != nil {
		return v, err
	}
	if v.Datarep, err = text("datarep", rep, 128); err != nil {
		return v, err
	}
	_, err = infoOf(info)
	return v, err
}

//export abiFileGetView
func abiFileGetView(h, disp, etype, ftype, rep uintptr) int32 {
	return onFile("File_get_view", 0, h, func(o *fileObject) error {
		v, err := o.View()
		if err != nil {
			return err
		}
		if err := put("disp", disp, v.Displacement); err != nil {
			return err
		}
		for _, x := range []struct {
			p uintptr
			t *mpi.Datatype
		}{{etype, v.Etype}, {ftype, v.Filetype}} {
			if err := put("etype or filetype", x.p, newType(x.t)); err != nil {
				return err
			}
		}
		_, err = putText("datarep", rep, 128, v.Datarep)
		return err
	})
}

//export abiFileSeek
func abiFileSeek(h uintptr, offset int64, whence int32) int32 {
	return onFile("File_seek", 0, h, func(o *fileObject) error {
		_, err := o.Seek(offset, int(whence))
		return err
	})
}

//export abiFileGetPosition
func abiFileGetPosition(h, out uintptr) int32 {
	return onFile("File_get_position", 0, h, func(o *fileObject) error { return put("offset", out, o.Position()) })
}

//export abiFileGetByteOffset
func abiFileGetByteOffset(h uintptr, offset int64, out uintptr) int32 {
	return onFile("File_get_byte_offset", 0, h, func(o *fileObject) error {
		at, err := o.ByteOffset(offset)
		if err != nil {
			return err
		}
		return put("disp", out, at)
	})
}

//export abiFileSeekShared
func abiFileSeekShared(h uintptr, offset int64, whence int32) int32 {
	return onFile("File_seek_shared", 0, h, func(o *fileObject) error { return o.SeekShared(offset, int(whence)) })
}

//export abiFileGetPositionShared
func abiFileGetPositionShared(h, out uintptr) int32 {
	return onFile("File_get_position_shared", 0, h, func(o *fileObject) error {
		to, err := result[int64]("offset", out)
		if err != nil {
			return err
		}
		*to, err = o.PositionShared()
		return err
	})
}
