//go:build cgo && !386 && !arm

package main

import "C"

import (
	"github.com/openimpi/impi/core/mpi"
)

//export abiCommRank
func abiCommRank(c, rank uintptr) int32 {
	return onComm("Comm_rank", 0, c, func(c *commObject) error { return putInt("rank", rank, c.Rank()) })
}

//export abiCommSize
func abiCommSize(c, size uintptr) int32 {
	return onComm("Comm_size", 0, c, func(c *commObject) error { return putInt("size", size, c.Size()) })
}

const predefinedKeys = 8 // of communicators: MPI_TAG_UB to MPI_UNIVERSE_SIZE, and one

type winValues struct{}

var _ = mpi.TagUB
