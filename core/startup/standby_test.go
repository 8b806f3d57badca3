package startup

import (
	"fmt"
	"testing"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

func TestProspectAfter(t *testing.T) {
	said := func(text string) error { return fmt.Errorf("startup: client 1: the server %w: %s", ErrFailed, text) }
	for _, c := range []struct {
		err  error
		want ServerOutcome
	}{
		{fmt.Errorf("the server's %w while we waited", ErrLost), MayReturn},
		{fmt.Errorf("the server cannot be reached: %w", ErrTimeout), MayReturn},
		{said("time limit is over: clients {0} of 2 did not come within 1m0s"), MayReturn},
		{said(Stopped + ": its operator sent SIGTERM"), MayReturn},
		{said(ErrMoved.Error()), MayReturn},
		{said(errNotYours.Error()), MayReturn},
		{said("authentication failed: wrong key"), WillRefuse},
		{fmt.Errorf("%w: no TLS", ErrAuth), WillRefuse},
		{fmt.Errorf("%w: FINI", ErrProtocol), WillRefuse},
		{said("client 0 (10.0.0.1:5): ended the job: proc 0 exited with status 5"), JobFailed},
		{said("client 0 (10.0.0.1:5): connection was lost before FINI"), JobFailed},
		{said("client rank cannot be used: a and b both say they are client 1"), JobFailed},
	} {
		if got := OutcomeAtServer(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// joinedServer is a server of two clients, of which client 0 has joined.
func joinedServer(t *testing.T) *Server {
	t.Helper()
	s, err := NewServer(ServerConfig{Clients: 2, Auth: Auth{None: true}}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	joinAs(s, 1, 0)
	return s
}

func joinAs(s *Server, id ConnID, rank int32) {
	s.Accept(id, fmt.Sprint("10.0.0.1:", id), unproved.Source{}, time.Time{})
	s.Receive(id, wire.AppendIMPI(wire.AppendAuth(nil, Auth{None: true}.Mask()), rank), time.Time{})
}

func happened(s *Server, kind EventKind) (n int) {
	for a, ok := s.Next(); ok; a, ok = s.Next() {
		if a.Kind == ActEvent && a.Event.Kind == kind {
			n++
		}
	}
	return n
}

// TestClientMoves: a client that waits may leave and come back; one that the others have met
// without ends the server; neither is a failure. Once all have come it is.
func TestClientMoves(t *testing.T) {
	s := joinedServer(t)
	s.Receive(1, wire.AppendFail(nil, ErrMoved.Error()), time.Time{})
	if ended, _ := s.Ended(); ended || happened(s, EventMoved) != 1 {
		t.Fatal("it has ended, or has not let the client go")
	}
	s.Closed(1, nil)
	joinAs(s, 2, 0)
	joinAs(s, 3, 1)
	if happened(s, EventAllHere) != 1 {
		t.Fatal("not all are here")
	}
	s.Receive(2, wire.AppendFail(nil, ErrMoved.Error()), time.Time{})
	if ended, err := s.Ended(); !ended || err == nil {
		t.Error("a client has left a job that has begun")
	}

	s = joinedServer(t)
	s.Receive(1, wire.AppendFail(nil, ErrMet.Error()), time.Time{})
	if ended, err := s.Ended(); !ended || err != nil {
		t.Errorf("ended %v, %v", ended, err)
	}

	s = joinedServer(t)
	s.Receive(1, wire.AppendFail(nil, "my own reason"), time.Time{})
	if ended, err := s.Ended(); !ended || err == nil {
		t.Error("a client that fails leaves the server waiting")
	}
}
