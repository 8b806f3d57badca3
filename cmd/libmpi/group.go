//go:build cgo && !386 && !arm

package main

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpi"
)

func triplets(name string, p uintptr, n int) ([]mpi.Range, error) {
	in, err := touched[[3]int32](name, p, n)
	out := make([]mpi.Range, len(in))
	for i, r := range in {
		out[i] = mpi.Range{First: int(r[0]), Last: int(r[1]), Stride: int(r[2])}
	}
	return out, err
}

func freeGroup(h uintptr) error {
	if h == groupEmpty {
		return nil
	}
	if g := groups.Get(h); g != nil {
		if err := (*g).Free(); err != nil {
			return err
		}
		groupSessions.Delete(*g)
	}
	if !groups.Free(h) {
		return bad(comm.ErrGroup, "group", h, groupNull)
	}
	return nil
}
