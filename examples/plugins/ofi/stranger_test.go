package main

import (
	"errors"
	"net/netip"
	"testing"
)

// A stranger's connects make a listener keep a bounded number of links, and its other messages
// nothing at all.
func TestStrangers(t *testing.T) {
	ln, err := configured(t, nil).Listen(t.Context(), here(t))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	n := ln.(*listener).n
	n.mu.Lock()
	defer n.mu.Unlock()
	from := append(room(nil, leastWindow), blobOf(netip.MustParseAddrPort("127.0.0.1:1"))...)
	for i := range uint64(3 * maxHalfOpen) {
		n.message(head{kind: kindConnect, value: i + 1}, from)
		n.message(head{kind: kindConnect, value: i + 1}, from) // it is sent again
	}
	if len(n.streams) != maxHalfOpen || n.half != maxHalfOpen || len(n.arrived) != 0 {
		t.Errorf("%d links, %d of them half open; %d would be accepted", len(n.streams), n.half, len(n.arrived))
	}
	for _, p := range n.peers {
		if len(p.refusals) > maxRefusals {
			t.Errorf("%d refusals wait", len(p.refusals))
		}
	}
	before := len(n.peers)
	for _, rest := range [][]byte{nil, from[:4], from[:10], append(room(nil, 1), from[4:]...), append(room(nil, mostWindow+1), from[4:]...), append(from[:20:20], 0)} {
		n.message(head{kind: kindConnect, value: 1 << 40}, rest)
	}
	for kind := range byte(20) {
		n.message(head{kind: kind, to: 12345}, from)
	}
	if len(n.streams) != maxHalfOpen || len(n.peers) != before {
		t.Errorf("%d links and %d peers after nonsense", len(n.streams), len(n.peers))
	}
}

// A peer that sends what it must not has its link broken.
func TestPeersThatBreakTheRules(t *testing.T) {
	for what, do := range map[string]func(l *stream){
		"more than was granted": func(l *stream) { l.message(head{kind: kindData, value: l.granted}, []byte{1}) },
		"no bytes":              func(l *stream) { l.message(head{kind: kindData, value: l.got}, nil) },
		"the same bytes twice": func(l *stream) {
			l.message(head{kind: kindData}, []byte{1})
			l.message(head{kind: kindData}, []byte{1})
		},
		"bytes behind the end": func(l *stream) {
			l.message(head{kind: kindFin}, nil)
			l.message(head{kind: kindData}, []byte{1})
		},
		"another end": func(l *stream) {
			l.message(head{kind: kindFin, value: 5}, nil)
			l.message(head{kind: kindFin, value: 6}, nil)
		},
		"too much ahead": func(l *stream) {
			for i := range uint64(maxAhead + 1) {
				l.message(head{kind: kindData, value: 2 + i}, []byte{1})
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			x := configured(t, nil)
			ln, err := x.Listen(t.Context(), here(t))
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			if _, err := dialFrom(t, x, ln.Address()); err != nil {
				t.Fatal(err)
			}
			l := <-ln.(*listener).n.arrived
			defer l.Close()
			l.n.mu.Lock()
			defer l.n.mu.Unlock()
			if do(l); l.state != broken || !errors.Is(l.err, errRules) {
				t.Errorf("state %d, %v", l.state, l.err)
			}
		})
	}
}

func TestParse(t *testing.T) {
	good := make([]byte, headSize+3)
	head{kind: kindData, size: 3, to: 7, value: 9}.put(good)
	if h, rest, ok := parse(good); !ok || h != (head{kind: kindData, size: 3, to: 7, value: 9}) || len(rest) != 3 {
		t.Errorf("%+v, %v, %v", h, rest, ok)
	}
	for i, b := range [][]byte{nil, good[:headSize-1], good[:headSize+2], append(good[:1:1], append([]byte{2}, good[2:]...)...)} {
		if _, _, ok := parse(b); ok {
			t.Errorf("%d: taken", i)
		}
	}
}
