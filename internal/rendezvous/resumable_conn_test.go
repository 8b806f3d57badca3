package rendezvous

import (
	"net"
	"testing"

	"github.com/openimpi/impi/core/resume"
)

// TestApart: since a connection is lost, and until there is another one, it is known that there is
// none.
func TestApart(t *testing.T) {
	ours, theirs := net.Pipe()
	l := newResumableConn(resume.ResumableID{7}, true, ours)
	lost := make(chan struct{})
	l.lost = func(uint64, error) { close(lost) }
	if err := l.dial(ours); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &Client{nc: l}
	if at := c.DisconnectedSince(); !at.IsZero() {
		t.Errorf("apart since %v, with a connection", at)
	}
	theirs.Close()
	<-lost
	if c.DisconnectedSince().IsZero() {
		t.Error("connected, without a connection")
	}
	ours, theirs = net.Pipe()
	defer theirs.Close()
	l.lost = func(uint64, error) {}
	if err := l.dial(ours); err != nil {
		t.Fatal(err)
	}
	if at := c.DisconnectedSince(); !at.IsZero() {
		t.Errorf("apart since %v, with a new connection", at)
	}
}
