package poll

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// TestSharedNeedsOneThread: goroutines that wait hold no threads.
func TestSharedNeedsOneThread(t *testing.T) {
	const waiting = 200
	var s Shared
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	before := launchtest.Threads(t)
	var wg, began sync.WaitGroup
	for range waiting {
		began.Add(1)
		fds := sockets(t)
		wg.Go(func() {
			began.Done()
			if err := s.Wait(ctx, fds[0], link.Readable); !errors.Is(err, cause) {
				t.Error(err)
			}
		})
	}
	began.Wait()
	for n := 0; n < waiting; {
		runtime.Gosched()
		s.mu.Lock()
		n = len(s.waits)
		s.mu.Unlock()
	}
	if n := launchtest.Threads(t) - before; n > waiting/4 {
		t.Errorf("%d goroutines wait with %d threads more than before", waiting, n)
	}
	cancel(cause)
	wg.Wait()
	if len(s.waits) != 0 {
		t.Errorf("%d waits are left", len(s.waits))
	}
}

func TestSharedWakesWhoIsMeant(t *testing.T) {
	var s Shared
	a, b := sockets(t), sockets(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- s.Wait(ctx, b[0], link.Readable) }()
	go func() {
		err := s.Wait(ctx, a[0], link.Readable)
		cancel()
		done <- err
	}()
	if _, err := unix.Write(a[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	got := []error{<-done, <-done}
	if !(errors.Is(got[0], context.Canceled) && got[1] == nil || got[0] == nil && errors.Is(got[1], context.Canceled)) {
		t.Errorf("the wait for what came and the one for nothing end with %v", got)
	}
	for range 3 { // and again: what was waited for once can be waited for again
		if err := s.Wait(t.Context(), a[0], link.Readable); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Wait(t.Context(), a[0], link.Writable); err != nil {
		t.Fatal(err)
	}
	_ = unix.Shutdown(b[1], unix.SHUT_WR)
	if err := s.Wait(t.Context(), b[0], link.Readable); err != nil {
		t.Fatal(err)
	}
}

func TestSharedWithTwoAtADescriptor(t *testing.T) {
	var s Shared
	fds := sockets(t)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- s.Wait(ctx, fds[0], link.Readable) }()
	go func() { second <- s.Wait(ctx, fds[0], link.Readable) }()
	var refused error
	select {
	case refused = <-first:
	case refused = <-second:
	}
	if refused == nil || ctx.Err() != nil {
		t.Errorf("the second one gets %v", refused)
	}
	cancel()
	if err := s.Wait(t.Context(), -1, link.Readable); err == nil {
		t.Error("a descriptor that is none is waited for")
	}
}

// TestSharedAfterAClose: a wait for a descriptor that was closed takes no event from a wait
// for the next descriptor with its number.
func TestSharedAfterAClose(t *testing.T) {
	var s Shared
	first, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	waits := func(n int) {
		for have := -1; have != n; {
			runtime.Gosched()
			s.mu.Lock()
			have = len(s.waits)
			s.mu.Unlock()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	over, again := make(chan error, 1), make(chan error, 1)
	go func() { over <- s.Wait(ctx, first[0], link.Readable) }()
	waits(1)
	_ = unix.Close(first[0])
	next := sockets(t)
	if next[0] != first[0] {
		t.Fatalf("the next descriptor is %d, not %d: the test would prove nothing", next[0], first[0])
	}
	go func() { again <- s.Wait(t.Context(), next[0], link.Readable) }()
	waits(2)
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, _ = unix.Write(next[1], []byte("x"))
	if err := <-again; err != nil {
		t.Error(err)
	}
	_ = unix.Close(first[1])
}

// TestSharedLosesNoWake: waits that end while others begin do not take their place.
func TestSharedLosesNoWake(t *testing.T) {
	var s Shared
	var wg sync.WaitGroup
	for range 8 {
		fds := sockets(t)
		for side, fd := range fds {
			wg.Go(func() {
				b := []byte("x")
				for turn := range 2000 {
					if turn%2 != side {
						if _, err := unix.Write(fd, b); err != nil {
							t.Error(err)
							return
						}
						continue
					}
					if err := s.Wait(t.Context(), fd, link.Readable); err != nil {
						t.Error(err)
						return
					}
					if n, err := unix.Read(fd, b); n != 1 {
						t.Error("woken for nothing", n, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}
