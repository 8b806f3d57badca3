package mpi

import (
	"fmt"
	"io"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

// TestNodeAsksAboutLinks: a proc that computes, and one that waits, tell what went
// over their links.
func TestNodeAsksAboutLinks(t *testing.T) {
	p, n, err := startUnder(t, layout{procs: 3}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	request, err := Isend((*Comm)(p.Comms.World), []byte("hello"), 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if ask, _, err := n.control.Recv(); err != nil || ask.Kind != wireup.KindOpen {
		t.Fatalf("%+v %v", ask, err)
	}
	direct := n.sendLink(t)
	if _, err := request.Wait(); err != nil {
		t.Fatal(err)
	}
	packet(t, direct, 5)
	s := askStats(t, n)
	if s.State != "computing" || s.Budget == 0 || !s.Agent.Counted || s.Agent.Sent != 0 || s.More {
		t.Errorf("%+v", s)
	}
	want := wireup.LinkStats{Peer: 1, Messages: 1, Data: 5, Counted: true, Pure: true, Sent: wire.HeaderSize + 5, Direct: true, Routed: true}
	if len(s.Links) != 1 || s.Links[0] != want {
		t.Errorf("%+v, want %+v", s.Links, want)
	}
	received := make(chan error, 1)
	go func() {
		_, err := Recv((*Comm)(p.Comms.World), make([]byte, 5), 1, 9)
		received <- err
	}()
	for state := ""; state != "asleep"; state = askStats(t, n).State { // it polls before it sleeps
	}
	_ = direct.Close()
	p.Lock()
	for _, q := range p.Endpoints.List {
		if q != nil && q.Peer == 1 {
			q.Drop(io.EOF)
		}
	}
	p.Unlock()
	if s := askStats(t, n); s.Counts.EndedSent != want.Sent || s.Counts.EndedReceived != 0 { // what has left has left
		t.Errorf("after the link's end: %+v", s.Counts)
	}
	p.Lock()
	p.SetFailed(ErrPeerGone)
	p.Unlock()
	if err := <-received; err == nil {
		t.Error("something came")
	}
}

// TestNodeIsToldNames: what a proc waits for is in a communicator that has the name that the
// program gave.
func TestNodeIsToldNames(t *testing.T) {
	p, n, err := startUnder(t, layout{procs: 1}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	c, err := (*Comm)(p.Comms.World).Dup()
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan error, 1)
	for _, name := range []string{"", "evens"} {
		want := name
		if name == "" {
			want = fmt.Sprintf("the communicator with context ID %d", c.in().Context())
		} else if err := c.SetName(name); err != nil {
			t.Fatal(err)
		}
		r, err := Irecv(c, make([]byte, 1), 0, 7)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := r.Wait()
			received <- err
		}()
		var w *wireup.Wait
		for w == nil || len(w.Partners) == 0 {
			w = askStats(t, n).Wait
		}
		if w.Partners[0].Comm != want {
			t.Errorf("it is told as %q, want %q", w.Partners[0].Comm, want)
		}
		if err := first(Send(c, make([]byte, 1), 0, 7), <-received); err != nil {
			t.Fatal(err)
		}
	}
}

func askStats(t *testing.T, n *node) *wireup.Stats {
	t.Helper()
	if err := n.control.Send(wireup.Message{Kind: wireup.KindStats}); err != nil {
		t.Fatal(err)
	}
	for {
		m, _, err := n.control.Recv()
		switch {
		case err != nil:
			t.Fatal(err)
		case m.Kind == wireup.KindStats && m.Stats != nil:
			return m.Stats
		case m.Kind != wireup.KindLost:
			t.Fatalf("%+v", m)
		}
	}
}

func TestStatsInParts(t *testing.T) {
	for n, want := range map[int][]int{0: {0}, 3: {3}, 4: {4}, 5: {4, 1}, 9: {4, 4, 1}} {
		s := &wireup.Stats{State: "asleep"}
		for i := range n {
			s.Links = append(s.Links, wireup.LinkStats{Peer: wire.WorldRank(i)})
		}
		next := 0
		parts := proc.SplitStats(s, 4)
		if len(parts) != len(want) {
			t.Fatalf("%d links: %d parts, want %d", n, len(parts), len(want))
		}
		for i, p := range parts {
			if len(p.Links) != want[i] || p.More != (i < len(parts)-1) || p.State != "asleep" {
				t.Errorf("%d links, part %d: %+v", n, i, p)
			}
			for _, l := range p.Links {
				if int(l.Peer) != next {
					t.Errorf("%d links: %d comes for %d", n, l.Peer, next)
				}
				next++
			}
		}
	}
}
