//go:build cgo && !386 && !arm

package main

import (
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// pageSize is at most that of the machine's pages.
const pageSize = 4096

// touchAll reads a byte of each page of n bytes at p, so that a fault happens in the call, and not
// in a link in the middle of the message.
func touchAll(p uintptr, n int64) {
	last := p + uintptr(n) - 1
	for q := p&^(pageSize-1) + pageSize; q < last; q += pageSize {
		touch(pointer(q))
	}
	touch(pointer(last))
}

func readable(b []byte) bool {
	return len(b) == 0 || faultless(func() { touchAll(uintptr(unsafe.Pointer(&b[0])), int64(len(b))) })
}

// writable reports whether all of b can be written. It changes nothing.
func writable(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	from := uintptr(unsafe.Pointer(&b[0]))
	last := from + uintptr(len(b)) - 1
	return faultless(func() {
		for p := from; p <= last; p = p&^(pageSize-1) + pageSize {
			atomic.OrUint32((*uint32)(pointer(p&^3)), 0)
		}
	})
}

// faultless reports whether f, which accesses memory of the program, does so without a fault.
func faultless(f func()) (ok bool) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			ok = false
		}
	}()
	f()
	return true
}
