package sdk

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

type listening struct {
	transports.Listener
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the accepting goroutine has ended
}

// Listen makes the transport listen and accepts links in a goroutine.
func (s *server) Listen(ctx context.Context, req *proto.ListenRequest) (*proto.ListenResponse, error) {
	if s.isDraining() {
		return &proto.ListenResponse{Error: refusal(transports.CodeResource, "the plugin is being stopped")}, nil
	}
	l, err := s.t.Listen(ctx, listenSpec(req))
	if err != nil {
		return &proto.ListenResponse{Error: wireError(err)}, nil
	}
	n := &listening{Listener: l, done: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancel(s.life)
	id := s.nextID()
	s.mu.Lock()
	s.listeners[id] = n
	s.mu.Unlock()
	go func() {
		defer close(n.done)
		s.accept(id, n)
	}()
	if s.isDraining() { // draining began before this listener was registered
		s.stopListen(id)
	}
	return &proto.ListenResponse{ListenerId: id, Address: l.Address()}, nil
}

// listenSpec is where to listen. To open a listener again that had any port, it takes the
// port from the listener's address.
func listenSpec(req *proto.ListenRequest) transports.ListenSpec {
	at := transports.ListenSpec{Host: req.GetHost(), Port: int(req.GetPort()), Dir: req.GetDir(), Name: req.GetName(), IPChannel: req.GetIpChannel()}
	if at.Port == 0 {
		at.Port = portOf(req.GetReopen())
	}
	return at
}

// portOf returns the port of an address: of "ip:port", with something behind a slash or without, of
// the first of several separated by commas, which all have the same port, or of a URL. It returns 0
// if there is none.
func portOf(address string) int {
	first, _, _ := strings.Cut(address, ",")
	if u, err := url.Parse(first); err == nil && u.Host != "" {
		first = u.Host
	}
	first, _, _ = strings.Cut(first, "/")
	if was, err := netip.ParseAddrPort(first); err == nil {
		return int(was.Port())
	}
	return 0
}

// Pauses before a failed accept is repeated, and the number of tries. A peer that goes away too
// early must not end the listener, nor keep those waiting that have come after it: they would give
// up, too, and be the next ones that have gone.
const (
	firstWait  = 5 * time.Millisecond
	longWait   = time.Second
	badTries   = 10
	patientFor = 64               // failures of peers, one after the other, without a pause
	tellEvery  = 10 * time.Second // between two lines about peers
)

// accept announces what l accepts, as long as there is room, until l is closed or fails for
// good.
func (s *server) accept(id uint64, l *listening) {
	var tries acceptTries
	var lost lostPeers
	for l.ctx.Err() == nil {
		x, err := l.Accept(l.ctx)
		if x == nil && err == nil {
			err = errNoLink
		}
		if err == nil {
			tries = acceptTries{}
			s.announce(id, l, x)
			continue
		}
		if l.ctx.Err() != nil {
			return
		}
		wait, over := tries.failed(err)
		switch {
		case over:
			s.events.add(&proto.Event{Kind: &proto.Event_ListenerFailed{
				ListenerFailed: &proto.ListenerFailed{ListenerId: id, Error: wireError(err)}}})
			return
		case ofPeer(err):
			lost.tell(l.Address(), err)
		default:
			Logger().Warn("cannot accept", "address", l.Address(), "error", err)
		}
		if wait > 0 {
			pause(l.ctx, wait)
		}
	}
}

// acceptTries counts calls of Accept that have failed one after the other.
type acceptTries struct{ failures, ofPeers int }

// failed counts a call that has failed with err, and returns how long to wait before the next one,
// or that the listener has failed for good.
func (t *acceptTries) failed(err error) (wait time.Duration, over bool) {
	if ofPeer(err) {
		if t.ofPeers++; t.ofPeers > patientFor { // as if the transport did not wait for anybody
			return firstWait, false
		}
		return 0, false
	}
	t.failures++
	if errors.Is(err, link.ErrClosed) || t.failures > badTries && !temporary(err) {
		return 0, true
	}
	return min(firstWait<<min(t.failures-1, 10), longWait), false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// ofPeer reports whether an error of Accept is about one peer, which has gone or was turned away.
func ofPeer(err error) bool {
	var te *transports.Error
	if !errors.As(err, &te) {
		return false
	}
	switch te.Code {
	case transports.CodeRefused, transports.CodeUnreachable, transports.CodeTimeout, transports.CodeAuth, transports.CodeProtocol:
		return true
	}
	return false
}

// lostPeers counts peers that were not accepted. Where many dial at a time, on a machine that is too
// busy for them, each of them has a reason like that of the others.
type lostPeers struct {
	told  time.Time
	since int
}

func (n *lostPeers) tell(address string, err error) {
	n.since++
	if now := time.Now(); now.Sub(n.told) >= tellEvery {
		Logger().Warn("a peer was not accepted; it may dial again", "address", address, "error", err, "peers", n.since)
		n.told, n.since = now, 0
	}
}

func temporary(err error) bool {
	var te *transports.Error
	return errors.As(err, &te) && te.Retryable
}

// announce keeps an accepted link and tells the node. It waits for room.
func (s *server) announce(id uint64, l *listening, x link.Link) {
	n := s.nextID()
	if !s.links.holdAccepted(l.ctx, n, x, id) {
		x.Close()
		return
	}
	s.accepts.Add(1)
	s.events.add(&proto.Event{Kind: &proto.Event_Accepted{Accepted: &proto.Accepted{ListenerId: id, LinkId: n, From: peerOf(x)}}})
}

// peerOf returns the IP address of a link's peer, or "" if the link does not know it.
func peerOf(x link.Link) string {
	known, ok := x.(interface{ RemoteAddr() net.Addr })
	if !ok {
		return ""
	}
	at, err := netip.ParseAddrPort(known.RemoteAddr().String())
	if err != nil {
		return ""
	}
	return at.Addr().String()
}

// StopListen closes a listener.
func (s *server) StopListen(_ context.Context, req *proto.StopListenRequest) (*proto.StopListenResponse, error) {
	s.stopListen(req.GetListenerId())
	return &proto.StopListenResponse{}, nil
}

// stopListen closes the listener with this number, if there is one, and the links that it
// accepted and that were not opened.
func (s *server) stopListen(id uint64) {
	s.mu.Lock()
	l := s.listeners[id]
	delete(s.listeners, id)
	s.mu.Unlock()
	if l == nil {
		return
	}
	l.cancel()
	l.Close()
	<-l.done
	s.links.closeFrom(id)
	s.events.settle(func(e *proto.Event) bool { return e.GetListenerFailed().GetListenerId() == id })
}

func (s *server) stopListeners() {
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.listeners))
	s.mu.Unlock()
	for _, id := range ids {
		s.stopListen(id)
	}
}

func (s *server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}
