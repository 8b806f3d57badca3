package ring

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offer is what a writer says about its process, so that the reader can find out
// whether it may read its memory.
type offer struct {
	pid  int32
	_    int32
	addr uint64    // of the key in that process's memory
	key  [2]uint64 // what is there
}

// AllowLending lets both directions of the link lend, as link.Lender has it, as
// far as the kernel lets one process read the other's memory. It is for the
// process that keeps the link to its end, before the link is used.
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

// tryBorrowing finds out, once the other side has made its offer, whether we can
// read its memory: whether the key is where it says. Numbers of processes mean
// nothing between name spaces, and what one process may read of another is the
// kernel's to say.
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
