package window

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
)

// place is where a member's memory is: in a process, which has a proof at another address. A
// process that does not have it is another one with the same number, as there is in another PID
// namespace.
type place struct{ pid, at, proofAt, proof int64 }

// proof is a number that no other process has. As a variable of the package it does not move.
var proof = func() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return int64(binary.NativeEndian.Uint64(b[:]))
}()

// pid is the number of this process. To ask for it is a system call, which can take as long as a
// short message.
var pid = int64(os.Getpid())

// whereabouts is this proc's place. On a simulated machine it has none: what procs tell each other
// is the same in each run of a seed.
func (m *memory) whereabouts() place {
	if !m.w.sharesMemory() {
		return place{}
	}
	return place{pid, int64(uintptr(m.mem)), int64(uintptr(unsafe.Pointer(&proof))), proof}
}

// approach finds out whose memory the kernel copies for this proc: of members on this machine, if
// this process may.
func (m *memory) approach(places []place) {
	if _, several := m.neighbours(); !several {
		return
	}
	reached := false
	for r := range places {
		x := &places[r]
		if !m.near[r] || m.extents[r].Size == 0 || x.pid == 0 || !x.proved() {
			x.pid = 0
			continue
		}
		reached = true
	}
	if reached {
		m.places = places
	}
}

// provedBefore has the places, without their memory, that have been proved: the kernel has been
// asked once for each process, and not once for each window.
var provedBefore sync.Map

// proved reports whether the kernel copies memory of the process that has the proof.
func (x *place) proved() bool {
	whose := place{pid: x.pid, proofAt: x.proofAt, proof: x.proof}
	if _, ok := provedBefore.Load(whose); ok {
		return true
	}
	got := int64(0)
	if !x.copy(unix.SYS_PROCESS_VM_READV, unsafe.Pointer(&got), uintptr(x.proofAt), 8) || got != x.proof {
		return false
	}
	provedBefore.Store(whose, true)
	return true
}

// copy copies n bytes between here and an address of the other process; false if not all of them
// were.
func (x *place) copy(call uintptr, here unsafe.Pointer, there uintptr, n int) bool {
	local := unix.Iovec{Base: (*byte)(here)}
	local.SetLen(n)
	remote := unix.RemoteIovec{Base: there, Len: n}
	// The call does not wait, so the scheduler is not informed.
	got, _, errno := unix.RawSyscall6(call, uintptr(x.pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	return errno == 0 && int(got) == n
}

// across puts or gets data without gaps, in memory of another process. False means that it has to
// be done by messages, which also say what is wrong, if anything is: part of it may be done
// already. The process is locked.
func (o *Origin) across(to *Target, h *rma.Header, x *parts) bool {
	m := &o.w.memory
	if m.places == nil || m.places[to.Rank].pid == 0 || h.Kind != rma.Put && h.Kind != rma.Get {
		return false
	}
	if o.w.Process.Eng.Unreachable(o.w.peer(to.Rank)) != nil {
		return false // another process may have its number by now
	}
	disp, ok := to.Type.Run(to.Count)
	off, err := m.extents[to.Rank].Locate(to.Disp, int64(to.Count), to.Type)
	if !ok || err != nil {
		return false
	}
	call, b := uintptr(unix.SYS_PROCESS_VM_WRITEV), x.out
	if h.Kind == rma.Get {
		call, b = unix.SYS_PROCESS_VM_READV, x.in
	}
	data := &o.w.Process.Data
	here := data.Exactly(o.w.peer(to.Rank), *b)
	if here.Items != nil {
		data.Retire(here.Items)
		return false
	}
	n := len(here.Mem)
	if h.Kind == rma.Get {
		there := proc.At(nil, to.Count, to.Type)
		n = int(there.Size(data.DataOf(o.w.peer(to.Rank))))
	}
	if n == 0 {
		return false
	}
	place := &m.places[to.Rank]
	return place.copy(call, unsafe.Pointer(unsafe.SliceData(here.Mem)), uintptr(place.at+off+disp), n)
}
