package ring

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offer is what a writer publishes about its process, so that the reader can find out
// whether it can read its memory.
type offer struct {
	pid  int32
	_    int32
	addr uint64 // address of the key in that process's memory
	key  [2]uint64
}

// AllowLending allows lending in both directions (link.Lender), if the kernel lets one
// process read the other's memory. It is for the process that uses the link to its end,
// before the first use.
func (l *Link) AllowLending() error {
	l.key = new([2]uint64)
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("ring: no key for lending: %w", err)
	}
	l.key[0], l.key[1] = binary.NativeEndian.Uint64(random[:8]), binary.NativeEndian.Uint64(random[8:])
	b := l.out.b
	b.offer = offer{pid: int32(os.Getpid()), addr: uint64(uintptr(unsafe.Pointer(l.key))), key: *l.key}
	b.lends.Store(1)
	return nil
}

// tryBorrowing finds out, once the other side has published its offer, whether we can read
// its memory: whether the key is at the address. The process number may mean another
// process in this name space, and the kernel may forbid reading.
func (l *Link) tryBorrowing() {
	if l.key == nil || l.in.b.lends.Load() == 0 {
		return
	}
	r := &l.in
	o := r.b.offer
	l.tried = true
	r.pid, r.key = int(o.pid), o.key
	r.proof = unix.RemoteIovec{Base: uintptr(o.addr), Len: int(unsafe.Sizeof(o.key))}
	r.remote[0] = r.proof
	r.local[0].Base, r.local[0].Len = (*byte)(unsafe.Pointer(&r.found)), uint64(unsafe.Sizeof(r.found))
	n, err := readMemory(r.pid, r.local[:1], r.remote[:1])
	if err != nil || n != int(unsafe.Sizeof(r.found)) || r.found != r.key {
		return
	}
	r.borrows = true
	r.b.takes.Store(1)
}
