package socket

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/unproved"
)

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWaiting()
		crowd := unproved.From(netip.MustParseAddr("192.0.2.1"))
		evicted := make(chan int, 1000)
		enter := func(i int, from unproved.Source) func() {
			leave, err := w.Enter(t.Context(), from, func() { evicted <- i })
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		begin := time.Now()
		var first func()
		for i := range waitingThere {
			if leave := enter(i, crowd); i == 5 {
				first = leave
			}
		}
		// Who leaves makes room at once.
		go func() {
			synctest.Wait()
			first()
		}()
		enter(1000, crowd)
		first() // again
		if took := time.Since(begin); took != 0 || len(evicted) != 0 {
			t.Errorf("waited %v, %d went", took, len(evicted))
		}
		// Then the oldest goes, when it has had its time.
		enter(1001, crowd)
		if took, out := time.Since(begin), <-evicted; took != waitingAge || out != 0 {
			t.Errorf("%d went after %v", out, took)
		}
		// Another address is not concerned, nor are links without one.
		enter(1002, unproved.From(netip.MustParseAddr("192.0.2.2")))
		enter(1003, unproved.Source{})
		if len(evicted) != 0 {
			t.Errorf("%d went for others", <-evicted)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range waitingThere - 1 {
			enter(2000, crowd) // the rest is old enough, too
		}
		cancel()
		if _, err := w.Enter(ctx, crowd, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestSources(t *testing.T) {
	for far, want := range map[unix.Sockaddr]unproved.Source{
		&unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 5}: unproved.From(netip.MustParseAddr("192.0.2.1")),
		&unix.SockaddrInet6{Addr: [16]byte{15: 1}}:                unproved.From(netip.MustParseAddr("::1")),
		&unix.SockaddrUnix{Name: "/x"}:                            {},
	} {
		if got := SourceOf(&Link{source: sourceOfPeer(far)}); got != want {
			t.Errorf("%v: %v", far, got)
		}
	}
	a, _ := link.Pair(1)
	if SourceOf(a) != (unproved.Source{}) {
		t.Error("a link in memory has an address")
	}
}
