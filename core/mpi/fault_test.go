package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// withStrangers starts one proc of a job of three whose links to the others end
// in the test's hands.
func withStrangers(t *testing.T) (p *proc.Process, ends map[int]link.Link) {
	t.Helper()
	p, err := proc.NewProcess(layout{procs: 3}.job(0), nil, machine.Local{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ends = map[int]link.Link{}
	for peer := 1; peer < 3; peer++ {
		a, b := socketPair()
		connect(t, p, peer, a)
		ends[peer] = b
	}
	return p, ends
}

func put(t *testing.T, l link.Link, b []byte) {
	t.Helper()
	if n, err := l.Send([][]byte{b}); n != len(b) || err != nil {
		t.Fatal(n, err)
	}
}

func TestPeerThatSendsGarbageLosesItsLink(t *testing.T) {
	p, ends := withStrangers(t)
	put(t, ends[1], pattern(200, 0))
	_, err := Recv((*Comm)(p.Comms.World), make([]byte, 8), 1, 0)
	if !errors.Is(err, message.ErrPeerDown) || !errors.Is(err, message.ErrProtocol) || !strings.Contains(err.Error(), "rank 1") {
		t.Errorf("receive: %v", err)
	}
	if err := Send((*Comm)(p.Comms.World), []byte{1}, 1, 0); !errors.Is(err, message.ErrPeerDown) {
		t.Errorf("send: %v", err)
	}
	// Rank 2 is not concerned.
	if err := Send((*Comm)(p.Comms.World), []byte{1}, 2, 0); err != nil {
		t.Errorf("to rank 2: %v", err)
	}
}

func TestPeerThatEndsInTheMiddleOfAPacket(t *testing.T) {
	p, ends := withStrangers(t)
	put(t, ends[1], make([]byte, 60))
	if err := ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Recv((*Comm)(p.Comms.World), make([]byte, 8), 1, 0)
	if !errors.Is(err, message.ErrPeerDown) || !errors.Is(err, ErrPeerGone) {
		t.Errorf("got %v", err)
	}
	if class := ErrorClass(err); class != mpierr.ProcAborted {
		t.Errorf("class %v", class)
	}
}

// Who probes for a message of a peer that is gone waits for nothing; what it had
// sent before can still be had.
func TestProbeOfAPeerThatEnds(t *testing.T) {
	p, ends := withStrangers(t)
	last := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(last, &wire.Packet{Src: p.Eng.Proc(1), Dest: p.Eng.Proc(0), LSRank: 1, Tag: 3})
	put(t, ends[1], last)
	if err := ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	_, probe := Probe((*Comm)(p.Comms.World), 1, 4)
	_, _, iprobe := Iprobe((*Comm)(p.Comms.World), 1, 4)
	_, _, mprobe := Mprobe((*Comm)(p.Comms.World), 1, 4)
	_, _, improbe := Improbe((*Comm)(p.Comms.World), 1, 4)
	for what, err := range map[string]error{"probe": probe, "iprobe": iprobe, "mprobe": mprobe, "improbe": improbe} {
		if !errors.Is(err, message.ErrPeerDown) || ErrorClass(err) != mpierr.ProcAborted {
			t.Errorf("%s: %v", what, err)
		}
	}
	if m, _, err := Mprobe((*Comm)(p.Comms.World), 1, AnyTag); err != nil || second(Mrecv(m, []byte{})) != nil {
		t.Errorf("what it had sent: %v", err)
	}
	if found, _, err := Iprobe((*Comm)(p.Comms.World), AnySource, AnyTag); found || err != nil {
		t.Errorf("from anybody: %v, %v", found, err)
	}
}

func TestSendUnderWayToAPeerThatEnds(t *testing.T) {
	p, ends := withStrangers(t)
	q, err := Isend((*Comm)(p.Comms.World), make([]byte, 8<<20), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Wait(); !errors.Is(err, message.ErrPeerDown) {
		t.Errorf("got %v", err)
	}
}

func TestAfterTheEndOfTheJob(t *testing.T) {
	p, _ := withStrangers(t)
	q, err := Irecv((*Comm)(p.Comms.World), make([]byte, 1), AnySource, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Lock()
	p.SetFailed(fmt.Errorf("for the test"))
	p.Unlock()
	for what, err := range map[string]error{
		"wait":  second(q.Wait()),
		"recv":  second(Recv((*Comm)(p.Comms.World), make([]byte, 1), 1, 0)),
		"probe": second(Probe((*Comm)(p.Comms.World), 1, 0)),
		"ssend": Ssend((*Comm)(p.Comms.World), []byte{1}, 2, 0),
	} {
		if !errors.Is(err, ErrJobOver) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAfterFinalize(t *testing.T) {
	procs := layout{}.start(t)
	p := procs[0]
	if err := life.FinalizeProc(p); err != nil {
		t.Fatal(err)
	}
	if err := Send((*Comm)(p.Comms.World), []byte{1}, 0, 0); !errors.Is(err, ErrFinalized) {
		t.Errorf("send: %v", err)
	}
	if err := Barrier((*Comm)(p.Comms.World)); !errors.Is(err, ErrFinalized) {
		t.Errorf("barrier: %v", err)
	}
	if err := life.FinalizeProc(p); !errors.Is(err, ErrFinalized) {
		t.Errorf("again: %v", err)
	}
}
