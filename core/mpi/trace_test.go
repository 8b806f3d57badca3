package mpi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
	"golang.org/x/sys/unix"
)

// A trace whose name says pcapng is a capture, in which packets have world ranks.
func TestTraceIsACaptureByItsName(t *testing.T) {
	job := layout{procs: 2}.job(0)
	job.Trace = filepath.Join(t.TempDir(), "packets-0.pcapng")
	job.Procs[1].Path = wireup.PathChannel
	p, n, err := startUnder(t, job, goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := Send((*Comm)(p.Comms.World), []byte("abc"), 1, 42); err != nil {
		t.Fatal(err)
	}
	packet(t, n.agent, 3)
	file, err := os.ReadFile(job.Trace)
	if err != nil || !bytes.HasPrefix(file, []byte{0x0a, 0x0d, 0x0d, 0x0a}) {
		t.Fatalf("the file begins with % x, %v", file[:min(len(file), 16)], err)
	}
	head := []byte{0xb6, 0xb2, 0xaf, 0xb6, 1, 0, 0, 0}
	head = binary.BigEndian.AppendUint32(head, 0) // from rank 0
	head = binary.BigEndian.AppendUint32(head, 1) // to rank 1, though it leaves for the agent
	if !bytes.Contains(file, head) || !bytes.Contains(file, []byte("rank 0 of")) || !bytes.Contains(file, []byte("agent")) {
		t.Errorf("no packet from rank 0 to rank 1 in %q", file)
	}
}

// A trace on a full disk ends there, and one into a pipe that nobody reads does not begin. The node
// hears of it once.
func TestTraceOnAFullDisk(t *testing.T) {
	full := func(path string) error { return os.Symlink("/dev/full", path) }
	pipe := func(path string) error { return unix.Mkfifo(path, 0o600) }
	for name, c := range map[string]struct {
		make func(path string) error
		why  string
	}{
		"packets.txt": {full, "no space left on device"}, "packets.pcapng": {full, "no space left on device"},
		"pipe.txt": {pipe, "is a pipe that nobody reads"}, "pipe.pcapng": {pipe, "is a pipe that nobody reads"},
	} {
		t.Run(name, func(t *testing.T) {
			job := layout{procs: 2}.job(0)
			job.Trace = filepath.Join(t.TempDir(), name)
			if err := c.make(job.Trace); err != nil {
				t.Fatal(err)
			}
			job.Procs[1].Path = wireup.PathChannel
			p, n, err := startUnder(t, job, goodWelcome)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := Send((*Comm)(p.Comms.World), []byte("abc"), 1, 42); err != nil {
					t.Fatal(err)
				}
				packet(t, n.agent, 3)
			}
			if err := p.Node.Control.Send(wireup.Message{Kind: wireup.KindFini}); err != nil {
				t.Fatal(err)
			}
			want := wireup.TruncatedTrace{File: job.Trace}
			m, _, err := n.control.Recv()
			if err != nil || m.Kind != wireup.KindTrace || m.Cut == nil || *m.Cut != want || !strings.Contains(m.Reason, c.why) {
				t.Fatalf("%+v, %v", m, err)
			}
			if m, _, err := n.control.Recv(); err != nil || m.Kind != wireup.KindFini {
				t.Errorf("then %+v, %v", m, err)
			}
		})
	}
}

// What has been written before counts, and nothing is written after.
func TestTraceFileEndsAtAFailure(t *testing.T) {
	var told []int64
	w := &roomFor{n: 3}
	f := &proc.TraceFile{W: w, Cut: func(n int64, _ error) { told = append(told, n) }}
	for _, s := range []string{"abc", "def", "ghi"} {
		_, _ = f.Write([]byte(s))
		w.n += 2 // somebody makes room, but too little at first
	}
	if string(w.b) != "abcde" || !slices.Equal(told, []int64{5}) {
		t.Errorf("%q is written, told %v", w.b, told)
	}
	w.n = 100
	if _, err := f.Write([]byte("jkl")); !errors.Is(err, unix.ENOSPC) || len(w.b) != 5 || len(told) != 1 {
		t.Errorf("%v, %q is written, told %v", err, w.b, told)
	}
}

// roomFor takes n bytes.
type roomFor struct {
	n int
	b []byte
}

func (r *roomFor) Write(b []byte) (int, error) {
	n := min(len(b), r.n)
	r.n -= n
	r.b = append(r.b, b[:n]...)
	if n < len(b) {
		return n, unix.ENOSPC
	}
	return n, nil
}

// A job runs on where its trace cannot be written.
func TestTraceThatIsImpossible(t *testing.T) {
	job := layout{procs: 2}.job(0)
	job.Trace = filepath.Join(t.TempDir(), "missing", "packets.pcapng")
	job.Procs[1].Path = wireup.PathChannel
	p, n, err := startUnder(t, job, goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := Send((*Comm)(p.Comms.World), []byte("abc"), 1, 42); err != nil {
		t.Fatal(err)
	}
	packet(t, n.agent, 3)
}
