package ntcopy

import "unsafe"

// chunk is the number of bytes that lines copies at a time, and align the alignment at which it
// begins to write.
const (
	chunk = 64
	align = 64
)

// lines copies n bytes, a multiple of chunk, to a multiple of align.
//
//go:noescape
func lines(dst, src *byte, n int)

func far(dst, src []byte) int {
	head := int(-uintptr(unsafe.Pointer(&dst[0])) & (align - 1))
	copy(dst[:head], src)
	n := (len(dst) - head) &^ (chunk - 1)
	lines(&dst[head], &src[head], n)
	copy(dst[head+n:], src[head+n:])
	return len(dst)
}
