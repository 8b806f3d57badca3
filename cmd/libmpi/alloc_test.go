//go:build cgo && !386 && !arm

package main

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
)

// initOnce joins the singleton of the test.
func initOnce(t *testing.T) {
	t.Helper()
	if phase.Load() == before {
		if code := abiInit(0, 0); code != success {
			t.Fatalf("MPI_Init gives %d", code)
		}
	}
	for _, c := range []uintptr{commWorld, commSelf} {
		want(t, "Comm_set_errhandler", abiCommSetErrhandler(c, 0x143), success)
	}
}

func want(t *testing.T, fn string, code int32, class mpi.Class) {
	t.Helper()
	if mpi.Class(code) != class {
		t.Errorf("MPI_%s gives %v, want %v", fn, mpi.Class(code), class)
	}
}

// memory is what C would have: addresses that stay.
type memory struct {
	out, in  [64]byte
	requests [2]uintptr
	statuses [2]status
	flag     int32
}

// escaped has what C is told the address of: it is not on a stack, which moves.
var escaped any

func at[T any](p *T) uintptr {
	escaped = p
	return uintptr(unsafe.Pointer(p))
}

const typeChar = 0x243

// TestAllocations is about calls that programs make often.
func TestAllocations(t *testing.T) {
	initOnce(t)
	m := new(memory)
	for name, f := range map[string]func(){
		"Comm_rank": func() { abiCommRank(commWorld, at(&m.flag)) },
		"Irecv, Send, Wait": func() {
			abiIrecv(at(&m.in), 64, typeChar, 0, 1, commSelf, at(&m.requests[0]), 0)
			abiSend(at(&m.out), 64, typeChar, 0, 1, commSelf, 0)
			abiWait(at(&m.requests[0]), at(&m.statuses[0]))
		},
		"Isend, Recv, Test": func() {
			abiIsend(at(&m.out), 64, typeChar, 0, 1, commSelf, at(&m.requests[0]), 0)
			abiRecv(at(&m.in), 64, typeChar, mpi.AnySource, mpi.AnyTag, commSelf, at(&m.statuses[0]), 0)
			abiTest(at(&m.requests[0]), at(&m.flag), 0)
			abiWait(at(&m.requests[0]), 0)
		},
		"Isend, Irecv, Waitall": func() {
			abiIrecv(at(&m.in), 64, typeChar, 0, 1, commSelf, at(&m.requests[0]), 0)
			abiIsend(at(&m.out), 64, typeChar, 0, 1, commSelf, at(&m.requests[1]), 0)
			abiWaitall(2, at(&m.requests[0]), at(&m.statuses[0]))
		},
		"Iprobe":    func() { abiIprobe(0, 9, commSelf, at(&m.flag), 0) },
		"Get_count": func() { abiGetCount(at(&m.statuses[0]), typeChar, at(&m.flag), 0) },
	} {
		f() // makes what is kept
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if m.requests != [2]uintptr{requestNull, requestNull} {
		t.Errorf("the requests are %#x", m.requests)
	}
	runtime.KeepAlive(m)
}

// TestBadHandles wants an error of the right class for each, and no crash.
func TestBadHandles(t *testing.T) {
	initOnce(t)
	m := new(memory)
	var dup uintptr
	want(t, "Comm_dup", abiCommDup(commSelf, at(&dup)), success)
	freed := dup
	want(t, "Comm_free", abiCommFree(at(&dup)), success)
	if dup != commNull {
		t.Errorf("Comm_free leaves %#x", dup)
	}
	for _, c := range []uintptr{0, commNull, groupEmpty, freed, 4096, 0xdeadbeef, ^uintptr(0), at(m)} {
		want(t, "Comm_rank", abiCommRank(c, at(&m.flag)), 5)
		want(t, "Send", abiSend(at(&m.out), 1, typeChar, 0, 0, c, 0), 5)
	}
	for _, dt := range []uintptr{0, datatypeNull, commWorld, 0x2ea, 0x3ff, 4096, 0xdeadbeef, freed} {
		want(t, "Send", abiSend(at(&m.out), 1, dt, 0, 0, commSelf, 0), 3)
	}
	for _, q := range []uintptr{0, commWorld, 0xdeadbeef, freed} {
		m.requests[0] = q
		want(t, "Wait", abiWait(at(&m.requests[0]), 0), 7)
		want(t, "Waitall", abiWaitall(1, at(&m.requests[0]), 0), 7)
	}
	for _, g := range []uintptr{0, groupNull, commWorld, freed} {
		want(t, "Group_size", abiGroupSize(g, at(&m.flag)), 9)
	}
	for _, op := range []uintptr{0, opNull, 0x3f, commWorld, freed} {
		want(t, "Allreduce", abiAllreduce(at(&m.out), at(&m.in), 1, typeChar, op, commSelf, 0), 10)
	}
	want(t, "Send", abiSend(0, 1, typeChar, 0, 0, commSelf, 0), 1)
	want(t, "Send", abiSend(inPlace, 1, typeChar, 0, 0, commSelf, 0), 1)
	want(t, "Send", abiSend(at(&m.out), -1, typeChar, 0, 0, commSelf, 0), 2)
	want(t, "Send", abiSend(at(&m.out), 1, typeChar, 7, 0, commSelf, 0), 6)
	want(t, "Send", abiSend(at(&m.out), 1, typeChar, 0, -5, commSelf, 0), 4)
	want(t, "Comm_rank", abiCommRank(commWorld, 0), 13)
	want(t, "Wait", abiWait(0, 0), 13)
	want(t, "Comm_spawn", abiUnsupported(0, 1, commWorld), 55)
	runtime.KeepAlive(m)
}

// TestStatusWords is about what a C program sees of a status.
func TestStatusWords(t *testing.T) {
	initOnce(t)
	m := new(memory)
	m.statuses[0][statusError] = 77
	want(t, "Send", abiSend(at(&m.out), 12, typeChar, 0, 5, commSelf, 0), success)
	want(t, "Recv", abiRecv(at(&m.in), 64, typeChar, mpi.AnySource, mpi.AnyTag, commSelf, at(&m.statuses[0]), 0), success)
	if got := m.statuses[0]; got != (status{0, 5, 77, 12}) {
		t.Errorf("the status is %v", got)
	}
	var n int64
	want(t, "Get_count", abiGetCount(at(&m.statuses[0]), 0x209, at(&n), 1), success)
	if n != 3 {
		t.Errorf("12 bytes are %d ints", n)
	}
	want(t, "Get_count", abiGetCount(at(&m.statuses[0]), 0x214, at(&n), 1), success)
	if n != mpi.Undefined {
		t.Errorf("12 bytes are %d doubles", n)
	}
	runtime.KeepAlive(m)
}

func TestThreadLevel(t *testing.T) {
	for required, given := range map[int32]int32{-3: 0, 0: 0, 1: 1024, 1024: 1024, 1025: 2048, 4096: 4096, 9999: 4096} {
		if got := threadLevel(required); got != given {
			t.Errorf("level %d gives %d, want %d", required, got, given)
		}
	}
}

// TestErrorText wants the text of an error to name the function, the class and what
// is wrong.
func TestErrorText(t *testing.T) {
	initOnce(t)
	var text [maxErrorString]byte
	var n int32
	code := abiSend(0, 1, typeChar, 0, 0, commSelf, 1)
	want(t, "Send_c", code, 1)
	want(t, "Error_string", abiErrorString(code, at(&text), at(&n)), success)
	if got := string(text[:n]); got != "invalid buffer; the last such error in this thread: MPI_Send_c: MPI_ERR_BUFFER: invalid buffer: nil, for 1 items of MPI_CHAR" {
		t.Errorf("the text is %q", got)
	}
	want(t, "Type_size", abiTypeSize(0x2e2, at(&n), 0), success)
	if n != 16 {
		t.Errorf("the size of MPI_REAL16 is %d", n)
	}
	want(t, "Type_size", abiTypeSize(0x3ff, at(&n), 0), 3)
}

// TestNoMemory wants an error for memory that is not there, and a library that goes
// on.
func TestNoMemory(t *testing.T) {
	initOnce(t)
	m := new(memory)
	const nowhere = 0x5a5a5a5a000
	want(t, "Send", abiSend(nowhere, 8, typeChar, 0, 3, commSelf, 0), 1)
	want(t, "Comm_rank", abiCommRank(commSelf, nowhere), 1)
	want(t, "Wait", abiWait(nowhere, 0), 1)
	want(t, "Send", abiSend(at(&m.out), 8, typeChar, 0, 3, commSelf, 0), success)
	want(t, "Recv", abiRecv(at(&m.in), 8, typeChar, 0, 3, commSelf, 0, 0), success)
	runtime.KeepAlive(m)
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{mpi.ErrNotInitialized, "MPI_Send: MPI_ERR_OTHER: MPI_Init has not been called"},
		{fmt.Errorf("mpi.Waitall: %w", mpi.ErrTag), "MPI_Send: MPI_ERR_TAG: invalid tag"},
	} {
		if got := describe("Send", 0, c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
