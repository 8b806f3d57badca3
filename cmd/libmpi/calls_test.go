//go:build cgo && !386 && !arm

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/abi/handles"
)

// TestLargeCounts is about functions that end in _c, and what the others say of what
// an int cannot count.
func TestLargeCounts(t *testing.T) {
	initOnce(t)
	var dt uintptr
	var small, combiner int32
	var wide, ints, addrs, large, types int64
	const n = 1 << 33
	want(t, "Type_contiguous_c", abiTypeContiguous(n, typeByte, at(&dt), 1), success)
	want(t, "Type_size", abiTypeSize(dt, at(&small), 0), success)
	want(t, "Type_size_c", abiTypeSize(dt, at(&wide), 1), success)
	if small != mpi.Undefined || wide != n {
		t.Errorf("sizes %d and %d", small, wide)
	}
	want(t, "Type_get_envelope", abiTypeGetEnvelope(dt, at(&small), at(&small), at(&small), at(&combiner)), 3)
	want(t, "Type_get_envelope_c", abiTypeGetEnvelopeC(dt, at(&ints), at(&addrs), at(&large), at(&types), at(&combiner)), success)
	if ints != 0 || addrs != 0 || large != 1 || types != 1 || combiner != 103 {
		t.Errorf("envelope %d %d %d %d, combiner %d", ints, addrs, large, types, combiner)
	}
	counts, displs := [1]int64{3}, [1]int64{-2}
	out, in := [8]byte{1, 2, 3}, [8]byte{}
	want(t, "Allgatherv_c", abiAllgatherv(at(&out), 3, typeByte, at(&in[4]), at(&counts), at(&displs), typeByte, commSelf, 1), success)
	if in != [8]byte{0, 0, 1, 2, 3} {
		t.Errorf("a block at -2 comes to %v", in)
	}
	want(t, "Type_free", abiTypeFree(at(&dt)), success)
	if dt != datatypeNull {
		t.Errorf("Type_free leaves %#x", dt)
	}
}

// TestPersistentCollective starts one twice.
func TestPersistentCollective(t *testing.T) {
	initOnce(t)
	m := new(memory)
	q := &m.requests[0]
	var x, sum int32
	want(t, "Allreduce_init", abiAllreduceInit(at(&x), at(&sum), 1, 0x209, 0x021, commSelf, infoNull, at(q), 0), success)
	h := *q
	for x = range int32(3) {
		want(t, "Start", abiStart(at(q)), success)
		want(t, "Wait", abiWait(at(q), at(&m.statuses[0])), success)
		if sum != x || *q != h {
			t.Errorf("round %d: the sum is %d, the request %#x, before %#x", x, sum, *q, h)
		}
	}
	want(t, "Startall", abiStartall(1, at(q)), success)
	want(t, "Start", abiStart(at(q)), 7) // it is active
	want(t, "Waitall", abiWaitall(1, at(q), 0), success)
	want(t, "Wait", abiWait(at(q), 0), success) // nothing to wait for
	want(t, "Request_free", abiRequestFree(at(q)), success)
	if *q != requestNull {
		t.Errorf("Request_free leaves %#x", *q)
	}
	m.requests[1] = h
	want(t, "Start", abiStart(at(&m.requests[1])), 7)
	runtime.KeepAlive(m)
}

func TestHandlesAsInts(t *testing.T) {
	initOnce(t)
	var dup uintptr
	want(t, "Comm_dup", abiCommDup(commWorld, at(&dup)), success)
	n := handles.Int(dup)
	if got := handleFromInt(int32(handles.Comm), n); got != dup || n <= 4095 {
		t.Errorf("%#x is %d as an int, which is %#x", dup, n, got)
	}
	if got := handleFromInt(int32(handles.Group), n); got != 0 {
		t.Errorf("a communicator's number is the group %#x", got)
	}
	want(t, "Comm_free", abiCommFree(at(&dup)), success)
	if got := handleFromInt(int32(handles.Comm), n); got != 0 {
		t.Errorf("the number of a freed communicator is %#x", got)
	}
}

// TestFiles writes through a view with gaps and reads all bytes.
func TestFiles(t *testing.T) {
	initOnce(t)
	name := filepath.Join(t.TempDir(), "data")
	path := append([]byte(name), 0)
	native := []byte("native\x00")
	var f, dt uintptr
	var st status
	var size int64
	const create, rdwr = 2, 32
	want(t, "File_open", abiFileOpen(commSelf, at(&path[0]), rdwr, infoNull, at(&f)), 42) // it is not there
	want(t, "File_open", abiFileOpen(commSelf, at(&path[0]), 16|rdwr, infoNull, at(&f)), 21)
	want(t, "File_open", abiFileOpen(commSelf, at(&path[0]), create|rdwr, infoNull, at(&f)), success)
	want(t, "Type_vector", abiTypeVector(2, 1, 2, typeByte, at(&dt), 0), success) // x.x
	want(t, "Type_commit", abiTypeCommit(at(&dt)), success)
	want(t, "File_set_view", abiFileSetView(f, 1, typeByte, dt, at(&native[0]), infoNull), success)
	out := []byte("abcde")
	want(t, "File_write", abiFileWrite(f, at(&out[0]), 5, typeByte, at(&st), 0), success)
	got, err := os.ReadFile(name)
	if err != nil || string(got) != "\x00a\x00bc\x00de" {
		t.Errorf("the file is %q, %v", got, err)
	}
	in := make([]byte, 8)
	want(t, "File_read_at", abiFileReadAt(f, 3, at(&in[0]), 8, typeByte, at(&st), 0), success)
	if n := st.load().Bytes(); n != 2 || string(in[:2]) != "de" {
		t.Errorf("%d bytes %q from the fourth on", n, in)
	}
	want(t, "File_get_position", abiFileGetPosition(f, at(&size)), success)
	if size != 5 {
		t.Errorf("the pointer is at %d", size)
	}
	var q uintptr
	want(t, "File_iread_at", abiFileIreadAt(f, 0, at(&in[0]), 3, typeByte, at(&q), 0), success)
	want(t, "Wait", abiWait(at(&q), at(&st)), success)
	if n := st.load().Bytes(); n != 3 || string(in[:3]) != "abc" {
		t.Errorf("%d bytes %q", n, in)
	}
	want(t, "File_read_at", abiFileReadAt(f, -1, at(&in[0]), 1, typeByte, 0, 0), 13)
	want(t, "File_read_shared", abiUnsupported(0, 3, f), 55)
	old := f
	want(t, "File_close", abiFileClose(at(&f)), success)
	want(t, "File_get_size", abiFileGetSize(old, at(&size)), 30)
	want(t, "File_delete", abiFileDelete(at(&path[0]), infoNull), success)
	want(t, "File_delete", abiFileDelete(at(&path[0]), infoNull), 42)
	want(t, "Type_free", abiTypeFree(at(&dt)), success)
}
