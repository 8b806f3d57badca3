package startup

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// TestOtherLost: a client knows the server's word for another one that it has lost after startup
// from all else by which the server ends the job, whatever a client says in its own FAIL.
func TestOtherLost(t *testing.T) {
	s := &Server{}
	gone := func(state connState) error {
		c := &conn{rank: 1, peer: "127.0.0.3:5", state: state}
		return s.blame(c, lost(io.EOF, fmt.Sprintf("before FINI (the last it sent was %s)", s.progress(c))))
	}
	done := gone(connDone).Error()
	for said, want := range map[string]bool{
		done: true,
		"client 0 (127.0.0.2:5): connection was lost before FINI (the last it sent was COLL C_VERSION)": false,
		s.blame(&conn{rank: 2, peer: "127.0.0.4:5"}, fmt.Errorf("%w: %s", ErrFailed, done)).Error():     false,
		"the operator ended it": false,
	} {
		if got := EndedByLostClient(fmt.Errorf("startup: client 0: %w", (&Client{}).told(said))); got != want {
			t.Errorf("%s: %v", said, got)
		}
	}
	if EndedByLostClient(errors.New(done)) || EndedByLostClient(nil) {
		t.Error("what no server has said counts")
	}
}

// TestAllListFailVersion: one client of another release or MPI is enough.
func TestAllListFailVersion(t *testing.T) {
	j := &Job{Clients: []ClientInfo{{Versions: []wire.Version{wire.Version00, wire.FailVersion}}, {Versions: []wire.Version{wire.Version00, wire.FailVersion}}}}
	if !AllListFailVersion(j) {
		t.Error("all do")
	}
	if j.Clients[1].Versions = j.Clients[1].Versions[:1]; AllListFailVersion(j) {
		t.Error("one does not")
	}
}

// TestOtherLostGoesOn: a client whose startup is over goes on when the server says that it has lost
// another one, and gives the error by which the job ends where it does not run yet. What does not
// follow the rules is dropped, as other answers are then.
func TestOtherLostGoesOn(t *testing.T) {
	c := &Client{state: clientRunning}
	send := func(l wire.Label, said string) {
		t.Helper()
		if err := c.Receive(append(wire.AppendAnswer(nil, l, 2, len(said)), said...), scriptStart); err != nil {
			t.Fatal(err)
		}
	}
	send(wire.LabelCards, "client 1 (127.0.0.3:5): connection was lost before FINI (the last it sent was DONE)")
	if err := c.TakeLostClient(); err != nil {
		t.Errorf("another label: %v", err)
	}
	send(wire.LabelLost, "client 1 (127.0.0.3:5): connection was lost before FINI (the last it sent was DONE): \x1b[2J")
	if err := c.TakeLostClient(); !EndedByLostClient(err) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
	if err := c.TakeLostClient(); err != nil {
		t.Errorf("twice: %v", err)
	}
	for range 3 * wire.MaxClients {
		send(wire.LabelLost, "again")
	}
	n := 0
	for c.TakeLostClient() != nil {
		n++
	}
	if n != wire.MaxClients {
		t.Errorf("%d are kept", n)
	}
	if err := c.Receive(wire.AppendCommand(nil, wire.CmdColl, 0), scriptStart); err != nil {
		t.Errorf("an answer without a label: %v", err)
	}
	if err := c.Finish(); err != nil {
		t.Error(err)
	}
}
