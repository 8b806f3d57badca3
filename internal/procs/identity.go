package procs

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// An identity consists of this bit, which no process ID has; 20 bits of the inode number of the
// node's PID namespace, as nodes with one address may be in different ones; the 22 bits of the
// node's process ID; and the number of the proc among all that the node has started. So the procs
// of a host have consecutive identities, and no table of them is needed.
const (
	identityMark  = 1 << 62
	pidBits       = 22 // the kernel's PID_MAX_LIMIT
	namespaceBits = 20
	numberBits    = 62 - pidBits - namespaceBits
)

type identities struct {
	base int64
	next atomic.Int64 // number
}

// ofNode has the identities of this process, in which several sites and spawned worlds may have
// procs.
var ofNode = newIdentities(os.Getpid(), namespace())

// newIdentities begins with a number that is far from those of nodes with process IDs near this one
// also in its last 16 bits, which is all that MetaMPICH keeps of an identity.
func newIdentities(pid int, namespace uint64) *identities {
	const golden = 40503 // the golden ratio of 1<<16: its multiples are far apart
	x := &identities{base: identityMark | int64(namespace%(1<<namespaceBits))<<(numberBits+pidBits) | int64(pid%(1<<pidBits))<<numberBits}
	x.next.Store(int64(uint16(pid) * golden))
	return x
}

func (x *identities) reserve(n int) (first int64) { return x.next.Add(int64(n)) - int64(n) }

// of returns the identity that goes with a number. Numbers start over after about a million procs.
func (x *identities) of(number int64) int64 { return x.base | number%(1<<numberBits) }

// namespace returns the inode number of this process's PID namespace, or 0 if there is no /proc.
func namespace() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return 0
	}
	return st.Ino
}
