package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	sdkfabric "github.com/openimpi/impi/plugins/sdk/transports/fabric"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

type listener struct {
	n       *node
	address string
	once    sync.Once
	done    chan struct{}
}

func (l *listener) Address() string { return l.address }

// Accept blocks until a peer has opened a link, ctx ends or the listener is closed.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	select {
	case <-l.done:
		return nil, link.ErrClosed
	default:
	}
	select {
	case <-l.done:
		return nil, link.ErrClosed
	case s := <-l.n.arrived:
		return s.link(), nil
	case <-ctx.Done():
		return nil, socket.Failure(name, "accept", l.address, ctx.Err())
	}
}

// link makes a link of an open stream.
func (l *stream) link() link.Link {
	if l.m != nil {
		return sdkfabric.New(l.m, l.n.cache)
	}
	return conn.New(l)
}

// closeTime is how long Close waits for the links, all of which were closed before, to have told
// their peers.
const closeTime = time.Second

// Close ends the listener. Its links continue, and the endpoint ends with the last of them.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.n.stop()
		for more := true; more; {
			select {
			case s := <-l.n.arrived:
				s.Break()
				_ = s.Close() // no call has accepted it
			default:
				more = false
			}
		}
		if !l.n.busy() {
			select {
			case <-l.n.done:
			case <-time.After(closeTime):
			}
		}
	})
	return nil
}

func (n *node) busy() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.streams {
		if !l.closed && l.state != abandoned {
			return true
		}
	}
	return false
}

// enter counts a user, if the node has not ended.
func (n *node) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || !n.open || n.f.shares() && n.inserted >= n.f.mostPeers() {
		return false
	}
	n.users++
	return true
}

func (n *node) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.users--
}

// lossy reports whether a provider sends again by itself what the network has lost, for which it has
// to be called often.
func lossy(provider string) bool { return strings.Contains(provider, "rxd") }
