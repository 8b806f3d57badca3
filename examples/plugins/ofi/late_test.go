package main

import (
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// A listener that was dialled while nobody was there is reached once it is, whether the dialler has
// given it up meanwhile or not.
func TestListenerThatComesLater(t *testing.T) {
	for what, c := range map[string]struct {
		wait bool // until it is given up
		mute bool // somebody listens there who says nothing
	}{
		"soon": {}, "after it was given up": {wait: true},
		"after a mute one": {mute: true}, "after a mute one was given up": {wait: true, mute: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			x, port := configured(t, map[string]any{"silence": 1.0, "timeout": 0.5}), quietPort()
			address := "ofi://[::ffff:127.0.0.1]:" + strconv.Itoa(port) + "/tcp;ofi_rxm"
			mute := net.Listener(nil)
			if c.mute {
				var err error
				if mute, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := dialFrom(t, x, address); err == nil {
				t.Fatal("a link to nobody")
			}
			until(t, "the end of the peer", func() bool {
				var te *transports.Error
				return !c.wait || func() bool { _, err := dialFrom(t, x, address); return errors.As(err, &te) }() && te.Code != transports.CodeTimeout
			})
			if c.mute {
				mute.Close()
			}
			ln, err := configured(t, nil).Listen(t.Context(), transports.ListenSpec{Host: "127.0.0.1", Port: port, Dir: t.TempDir(), Name: "test"})
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			until(t, "the listener", func() bool {
				_, err := dialFrom(t, x, address)
				return err == nil
			})
		})
	}
}

// A peer that was given up while messages to it were under way is reached when it is back, although
// these never complete.
func TestPeerThatWasGivenUp(t *testing.T) {
	x := configured(t, map[string]any{"rdma": false})
	ln := listens(t, x, here(t))
	both(t, x, ln)
	for _, n := range x.nodes {
		n.mu.Lock()
		for _, p := range n.peers {
			p.posted++ // one that never completes
			p.fail(n, errSilent)
		}
		n.mu.Unlock()
	}
	both(t, x, ln)
}
