package mpi

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/openimpi/impi/internal/wireup"
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
	if err := Send(p.world, []byte("abc"), 1, 42); err != nil {
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

// A job runs on where its trace cannot be written.
func TestTraceThatIsImpossible(t *testing.T) {
	job := layout{procs: 2}.job(0)
	job.Trace = filepath.Join(t.TempDir(), "missing", "packets.pcapng")
	job.Procs[1].Path = wireup.PathChannel
	p, n, err := startUnder(t, job, goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := Send(p.world, []byte("abc"), 1, 42); err != nil {
		t.Fatal(err)
	}
	packet(t, n.agent, 3)
}
