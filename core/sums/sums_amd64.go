package sums

import "unsafe"

// floats and integers are the loops by the size of an element. All amd64 processors have what they
// need, except for vectors.
var floats, integers = map[int]Loop{4: float32s, 8: float64s}, map[int]Loop{4: int32s, 8: int64s}

// vectors says that the processor adds 32 bytes at a time, which the loops then do.
var vectors = avx2()

func avx2() bool

//go:noescape
func float64s(in, inout unsafe.Pointer, n int)

//go:noescape
func float32s(in, inout unsafe.Pointer, n int)

//go:noescape
func int64s(in, inout unsafe.Pointer, n int)

//go:noescape
func int32s(in, inout unsafe.Pointer, n int)
