package wireup

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/board"
)

// maxFetch bounds what one system call copies.
const maxFetch = 1 << 20

// ErrUnreadable is wrapped by the error for memory of another process that cannot be read, though
// the process may well be there.
var ErrUnreadable = errors.New("the memory cannot be read")

// NewLending lets the procs of the host read this process's memory, as far as the kernel allows.
func NewLending() (*board.Lending, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("board: no key for lending: %w", err)
	}
	own := &ownKey
	own[0], own[1] = binary.NativeEndian.Uint64(random[:8]), binary.NativeEndian.Uint64(random[8:])
	return &board.Lending{
		Key:   board.MemoryKey{Process: uint64(os.Getpid()), Addr: uint64(uintptr(unsafe.Pointer(own))), Cookie: *own},
		Cores: usable(),
		Fetch: fetch,
	}, nil
}

func usable() board.Cores {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		for cpu := range 8 * int(unsafe.Sizeof(set)) {
			if set.IsSet(cpu) {
				return board.Cores{Count: uint32(set.Count()), First: uint32(cpu)}
			}
		}
	}
	return board.Cores{Count: uint32(runtime.NumCPU())}
}

// ownKey proves to others that the memory that they read is that of this process. It is there as
// long as the process.
var ownKey [2]uint64

// fetch is the Fetch of a board.Lending. The other process's key is read in the same system call,
// which proves that the memory is still its own. The scheduler is not told of the call, since it
// does not wait.
func fetch(from *board.MemoryKey, addr uint64, to []byte) error {
	var found [2]uint64
	local := [2]unix.Iovec{{Base: (*byte)(unsafe.Pointer(&found))}, {}}
	local[0].SetLen(int(unsafe.Sizeof(found)))
	remote := [2]unix.RemoteIovec{{Base: uintptr(from.Addr), Len: int(unsafe.Sizeof(found))}, {}}
	for len(to) > 0 {
		n := min(len(to), maxFetch)
		local[1].Base = &to[0]
		local[1].SetLen(n)
		remote[1] = unix.RemoteIovec{Base: uintptr(addr), Len: n}
		got, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(from.Process),
			uintptr(unsafe.Pointer(&local)), 2, uintptr(unsafe.Pointer(&remote)), 2, 0)
		if errno == unix.ESRCH {
			return fmt.Errorf("process %d has ended: %w", from.Process, errno)
		}
		if errno != 0 || int(got) != n+int(unsafe.Sizeof(found)) || found != from.Cookie {
			return fmt.Errorf("process %d: %w", from.Process, errors.Join(ErrUnreadable, errnoOrNil(errno)))
		}
		addr, to = addr+uint64(n), to[n:]
	}
	return nil
}

func errnoOrNil(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
