package wireup

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
)

// FuzzRecv sends any record over a real control socket: the result is a message or an
// error, and a message survives being sent again.
func FuzzRecv(f *testing.F) {
	for _, m := range []Message{
		{Kind: KindHello, Version: Version, Library: "impi 1.0"},
		{Kind: KindWelcome, Version: Version},
		{Kind: KindOpen, Peer: 3},
		{Kind: KindLink, Peer: 3, Transport: "tcp", DataPlane: "fd", Reason: "no \"route\"\n\xff"},
		{Kind: KindAbort, Code: -7, Reason: "on purpose"},
	} {
		b, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"kind":{},"peer":4294967296}`))
	f.Add([]byte("{\"peer\":1}{\"peer\":2}"))
	f.Add([]byte{0})
	var ends [2]*Conn
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		f.Fatal(err)
	}
	for i, fd := range fds {
		if ends[i], err = NewConn(fd); err != nil {
			f.Fatal(err)
		}
		defer ends[i].Close()
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		if len(b) == 0 || len(b) > maxMessage {
			return // an empty record means that the peer is gone, and this one does not fit
		}
		if _, err := ends[0].conn.Write(b); err != nil {
			t.Fatal(err)
		}
		m, fds, err := ends[1].Recv()
		if len(fds) > 0 {
			t.Fatalf("%d descriptors of nowhere", len(fds))
		}
		if err != nil {
			if !errors.Is(err, ErrMessage) || m != (Message{}) {
				t.Fatalf("%+v, %v", m, err)
			}
			return
		}
		if err := ends[1].Send(m); err != nil {
			if errors.Is(err, ErrMessage) {
				return // bytes that are not UTF-8 grow
			}
			t.Fatal(err)
		}
		if again, _, err := ends[0].Recv(); err != nil || again != m {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

// FuzzReadJob reads anything as a job: what is accepted can be used, and takes no more than a few
// times its size in memory.
func FuzzReadJob(f *testing.F) {
	table, _ := split(job().Procs)
	table.Index()
	good, err := json.Marshal(job())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"rank":1,"views":[{"path":"self"},{"first":1,"path":"native"}],"data_len":1,"ackmark":1,"hiwater":1}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		var j *Job
		var err error
		cost := allocs.Bytes(func() { j, err = readJob(b, table) })
		if most := uint64(allocs.MaxError + 64*len(b)); cost > most {
			t.Fatalf("%d bytes took %d bytes of memory", len(b), cost)
		}
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatal(err)
			}
			return
		}
		if int(j.Rank) >= j.Size() || j.Rank < 0 || j.AckMark > j.HiWater || j.DataLen == 0 {
			t.Fatalf("accepted %+v", j)
		}
	})
}

// FuzzDescriptors reads any bytes as what the kernel sends beside a record.
func FuzzDescriptors(f *testing.F) {
	f.Add(unix.UnixRights(1, 2, 3))
	f.Add(append(unix.UnixRights(7), unix.UnixRights(8, 9)...))
	f.Add(unix.UnixRights())
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		// The kernel aligns it, so the length at the front can be read as it is.
		oob := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(make([]uint64, len(b)/8+1)))), len(b))
		copy(oob, b)
		fds, err := descriptors(oob)
		if err == nil && 4*len(fds) > len(b) {
			t.Fatalf("%d descriptors in %d bytes", len(fds), len(b))
		}
	})
}

// TestSparseJob: a sparse file that is too long is refused before it is read.
func TestSparseJob(t *testing.T) {
	fd, err := unix.MemfdCreate("sparse", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, maxJob+1); err != nil {
		t.Fatal(err)
	}
	cost := allocs.BytesExact(func() { _, err = OpenJob(fd, tableOf(t, job())) })
	if !errors.Is(err, ErrMessage) || cost > 64<<10 {
		t.Errorf("%v, at the cost of %d bytes", err, cost)
	}
	if _, err := os.NewFile(uintptr(fd), "").Stat(); err == nil {
		t.Error("the descriptor is still open")
	}
}
