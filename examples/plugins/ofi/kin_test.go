package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// inside takes the connection out of a link.
func inside(t *testing.T, l link.Link) transports.Conn {
	t.Helper()
	c, err := l.(transports.Piped).Detach()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// both makes a link, sends something by it in both directions, and returns its ends.
func both(t *testing.T, x *transport, ln transports.Listener) (near, far transports.Conn) {
	t.Helper()
	l, err := dialFrom(t, x, ln.Address())
	if err != nil {
		t.Fatal(err)
	}
	near = inside(t, l)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if l, err = ln.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	far = inside(t, l)
	for _, way := range [][2]transports.Conn{{near, far}, {far, near}} {
		sent, got := make([]byte, 100000), make([]byte, 100000)
		for i := range sent {
			sent[i] = byte(i * 7)
		}
		if _, err := way[0].Write(sent); err != nil {
			t.Fatal(err)
		}
		_ = way[1].SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.ReadFull(way[1], got); err != nil || string(got) != string(sent) {
			t.Fatalf("what was sent has not come: %v", err)
		}
	}
	return near, far
}

// reaches reports whether a node of x has a peer that is another one.
func (x *transport) reaches(other *node) bool {
	for _, n := range x.nodes {
		n.mu.Lock()
		_, has := n.peers[string(other.f.name)]
		n.mu.Unlock()
		if has {
			return true
		}
	}
	return false
}

func listens(t *testing.T, x *transport, at transports.ListenSpec) transports.Listener {
	t.Helper()
	ln, err := x.Listen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// With shm libfabric uses the memory of other endpoints in the process as it is. Whichever end is
// closed first, whether links are left, and when it is dialled again: nobody uses what has gone.
func TestTwoEndpointsOfOneProcess(t *testing.T) {
	shm := map[string]any{"provider": "shm", "rdma": false}
	for what, wait := range map[string]func(closed *node, others *transport){
		"at once":                   func(*node, *transport) {},
		"when its endpoint is gone": func(closed *node, _ *transport) { <-closed.done },
		"when the other forgets it": func(closed *node, other *transport) {
			<-closed.done
			until(t, "the end of a peer", func() bool { return !other.reaches(closed) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			x, y, at := configured(t, shm), configured(t, shm), here(t)
			ln := listens(t, x, at)
			address := ln.Address()
			_, far := both(t, y, ln)
			n := ln.(*listener).n
			far.Close()
			ln.Close()
			wait(n, y)
			if _, err := dialFrom(t, y, address); err == nil {
				t.Error("a link to an endpoint that was closed")
			}
			ln = listens(t, x, at)
			near, far := both(t, y, ln)
			n = y.nodes[""]
			near.Close()
			far.Close()
			if err := y.Close(); err != nil { // its endpoint is closed before the listener's
				t.Fatal(err)
			}
			wait(n, &transport{nodes: map[string]*node{"": ln.(*listener).n}})
			both(t, configured(t, shm), ln)
			both(t, y, ln)
			both(t, x, ln) // to itself
		})
	}
}

// The first endpoint of a listener has the same name in each process; no name is used twice in one,
// whether the links of the first go on or not.
func TestNamesOfEndpoints(t *testing.T) {
	x, at := configured(t, map[string]any{"provider": "shm", "rdma": false}), here(t)
	first := listens(t, x, at)
	if to, err := parseAddress(first.Address()); err != nil || strings.Contains(string(to.blob), strconv.Itoa(os.Getpid())) {
		t.Errorf("%q, %v", to.blob, err)
	}
	near, far := both(t, x, first)
	first.Close()
	for range 2 {
		second := listens(t, x, at)
		if second.Address() == first.Address() {
			t.Error("two endpoints have one address")
		}
		both(t, x, second)
		if _, err := dialFrom(t, x, first.Address()); err == nil {
			t.Error("a link to the first listener")
		}
		if near == nil {
			break
		}
		if _, err := near.Write([]byte{1}); err != nil {
			t.Errorf("a link of the first listener: %v", err)
		}
		if _, err := io.ReadFull(far, make([]byte, 1)); err != nil {
			t.Errorf("a link of the first listener: %v", err)
		}
		near.Close()
		far.Close()
		near = nil
		<-first.(*listener).n.done // its endpoint has gone
	}
}

// libfabric's shm removes an endpoint that lives when another process asks for its name.
func TestNameOfAnotherProcess(t *testing.T) {
	x, at := configured(t, map[string]any{"provider": "shm", "rdma": false}), here(t)
	c, err := claimFor(at)
	if err != nil {
		t.Fatal(err)
	}
	c.free()
	delete(claims.had, c.name) // as in another process
	other, err := net.ListenPacket("unixgram", c.socket())
	if err != nil {
		t.Fatal(err)
	}
	var te *transports.Error
	if _, err := x.Listen(t.Context(), at); !errors.As(err, &te) || te.Code != transports.CodeResource || !te.Retryable {
		t.Errorf("%v, want %s", err, transports.CodeResource)
	}
	other.Close()
	listens(t, x, at)
}
