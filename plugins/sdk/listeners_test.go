package sdk

import (
	"context"
	"syscall"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

func (s *served) listen(t *testing.T, key string) uint64 {
	t.Helper()
	l, err := s.TransportClient.Listen(soon(t), &proto.ListenRequest{Call: call(key), Host: "h", Port: 1, Dir: "d", Name: "n"})
	if err != nil || l.Error != nil || l.Address != "fake:1" {
		t.Fatal(l, err)
	}
	return l.ListenerId
}

// eventsAfter returns a function that waits for the next event after number n.
func (s *served) eventsAfter(t *testing.T, n uint64) func() *proto.Event {
	t.Helper()
	stream, err := s.TransportClient.Events(soon(t), &proto.EventsRequest{After: n})
	if err != nil {
		t.Fatal(err)
	}
	return func() *proto.Event {
		t.Helper()
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

func TestAcceptedLinks(t *testing.T) {
	f := &fake{incoming: make(chan any)}
	s := serve(t, f)
	id := s.listen(t, "l")
	if f.listened != (transports.ListenSpec{Host: "h", Port: 1, Dir: "d", Name: "n"}) {
		t.Errorf("listens at %+v", f.listened)
	}
	next := s.eventsAfter(t, 0)
	var last *proto.Event
	for i := range 3 {
		l, _ := socketLink(t)
		f.incoming <- l
		e := next()
		if e.Sequence != uint64(i+1) || e.GetAccepted().GetListenerId() != id || e.GetAccepted().GetLinkId() == 0 {
			t.Errorf("event %v", e)
		}
		last = e
	}
	// What was opened is settled; the rest comes again to a node that lost the
	// stream.
	o, err := s.TransportClient.OpenDataPlane(soon(t), &proto.OpenDataPlaneRequest{
		Call: call("o"), LinkId: last.GetAccepted().GetLinkId(), Modes: []string{"fd"}})
	if err != nil || o.Error != nil {
		t.Fatal(o, err)
	}
	again := s.eventsAfter(t, 1)
	if e := again(); e.Sequence != 2 {
		t.Errorf("event %v", e)
	}
	l, _ := socketLink(t)
	f.incoming <- l
	if e := again(); e.Sequence != 4 {
		t.Errorf("event %v", e)
	}
}

// A plugin accepts no more links than it may hold.
func TestAcceptIsBounded(t *testing.T) {
	dialled, _ := socketLink(t)
	f := &fake{
		incoming: make(chan any, proto.MaxWaiting+10),
		dial:     func(context.Context, transports.DialSpec) (link.Link, error) { return dialled, nil },
	}
	s := serve(t, f)
	var fars []int
	for range cap(f.incoming) {
		l, far := socketLink(t)
		fars = append(fars, far)
		f.incoming <- l
	}
	id := s.listen(t, "l")
	next := s.eventsAfter(t, 0)
	var first uint64
	for i := range cap(s.links.accepted) {
		e := next()
		if i == 0 {
			first = e.GetAccepted().GetLinkId()
		}
	}
	if n := len(s.links.room); n != cap(s.links.accepted) || n >= proto.MaxWaiting {
		t.Errorf("%d links wait", n)
	}
	if d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("d")}); err != nil || d.GetError() != nil {
		t.Errorf("there is no room for a link that is dialled: %v, %v", d, err)
	}
	s.TransportClient.CloseLink(soon(t), &proto.CloseLinkRequest{Call: call("c"), LinkId: first})
	next() // there is room for one more
	s.TransportClient.StopListen(soon(t), &proto.StopListenRequest{Call: call("s"), ListenerId: id})
	for _, far := range fars[:cap(s.links.accepted)+2] { // and the one that was waiting for room
		ended(t, far)
	}
	if n, m := len(s.links.room), len(s.links.accepted); n != 1 || m != 0 {
		t.Errorf("%d links still wait, %d of them accepted", n, m)
	}
	if batch, _ := s.events.after(0); len(batch) != 0 {
		t.Errorf("events of a listener that is closed: %v", batch)
	}
}

// One bad peer, or a shortage, does not cost the listener.
func TestAcceptGoesOn(t *testing.T) {
	f := &fake{incoming: make(chan any, 10)}
	s := serve(t, f)
	f.incoming <- &transports.Error{Code: transports.CodeProtocol, Reason: "a bad peer"}
	f.incoming <- &transports.Error{Code: transports.CodeResource, Retryable: true, Reason: "out of descriptors"}
	l, _ := socketLink(t)
	f.incoming <- l
	s.listen(t, "l")
	if e := s.eventsAfter(t, 0)(); e.GetAccepted() == nil {
		t.Errorf("event %v", e)
	}
}

// TestPeersThatHaveGone: however many peers have given up, or are strangers, the one after them is
// accepted without a pause, and the listener stays.
func TestPeersThatHaveGone(t *testing.T) {
	gone := []error{
		socket.Failure("fake", "accept", "a", syscall.EPIPE),
		&transports.Error{Code: transports.CodeAuth, Reason: "a stranger"},
		&transports.Error{Code: transports.CodeTimeout, Retryable: true, Reason: "no answer in time"},
	}
	f := &fake{incoming: make(chan any, 200)}
	s := serve(t, f)
	var tries acceptTries
	for range 2 * badTries {
		for _, err := range gone {
			f.incoming <- err
			if wait, over := tries.failed(err); wait != 0 || over {
				t.Fatalf("after %v: wait for %v, over %v", err, wait, over)
			}
		}
	}
	l, _ := socketLink(t)
	f.incoming <- l
	s.listen(t, "l")
	if e := s.eventsAfter(t, 0)(); e.GetAccepted() == nil {
		t.Errorf("event %v", e)
	}
	for range patientFor {
		tries.failed(gone[0])
	}
	if wait, over := tries.failed(gone[0]); wait != firstWait || over {
		t.Errorf("a transport that fails all the time is called again after %v, over %v", wait, over)
	}
}

func TestListenerFails(t *testing.T) {
	f := &fake{incoming: make(chan any, 10)}
	s := serve(t, f)
	f.incoming <- link.ErrClosed
	id := s.listen(t, "l")
	e := s.eventsAfter(t, 0)()
	if e.GetListenerFailed().GetListenerId() != id || e.GetListenerFailed().GetError() == nil {
		t.Errorf("event %v", e)
	}
}

func TestListenRefused(t *testing.T) {
	s := serve(t, &fake{})
	l, err := s.TransportClient.Listen(soon(t), &proto.ListenRequest{Call: call("l"), Name: "refused"})
	if err != nil || l.GetError().GetCode() != "address" || l.GetError().GetReason() != "not here" {
		t.Errorf("%v, %v", l, err)
	}
}

// A listener whose port was any has the same one again.
func TestReopenSpec(t *testing.T) {
	for _, c := range []struct {
		req  *proto.ListenRequest
		port int
	}{
		{&proto.ListenRequest{Reopen: "127.0.0.1:77"}, 77},
		{&proto.ListenRequest{Reopen: "[::1]:77"}, 77},
		{&proto.ListenRequest{Reopen: "127.0.0.1:77", Port: 5}, 5},
		{&proto.ListenRequest{Reopen: "/run/x"}, 0},
		{&proto.ListenRequest{}, 0},
	} {
		if got := listenSpec(c.req); got.Port != c.port {
			t.Errorf("%q: port %d, want %d", c.req.Reopen, got.Port, c.port)
		}
	}
}

// Old answers are forgotten, not kept without end.
func TestAnswersAreForgotten(t *testing.T) {
	s := serve(t, &fake{})
	for i := range 2 * keptAnswers {
		s.calls.abandon(string(rune('a'+i%26)) + string(rune(0x4e00+i)))
	}
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	if len(s.calls.entries) != keptAnswers || len(s.calls.ended) != keptAnswers {
		t.Errorf("%d entries, %d keys", len(s.calls.entries), len(s.calls.ended))
	}
}

func TestPortOf(t *testing.T) {
	for address, want := range map[string]int{
		"127.0.0.1:80": 80, "[::1]:81": 81, "10.0.0.1:5,[::1]:5": 5, "ws://127.0.0.1:82/impi": 82, "wss://[::1]:83": 83, "127.0.0.1:84/8": 84, "127.0.0.1:85,[::1]:85/8": 85,
		"": 0, "/run/x.sock": 0, "67348e3e!/run/x": 0, "ws://somewhere/impi": 0,
	} {
		if got := portOf(address); got != want {
			t.Errorf("%q has the port %d, want %d", address, got, want)
		}
	}
}
