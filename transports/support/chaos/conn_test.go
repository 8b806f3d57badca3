package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// recorder is a connection that records what is written to it, and when.
type recorder struct {
	begun time.Time
	stop  chan struct{} // closed when the connection is
	once  sync.Once

	mu     sync.Mutex
	events []string
	bytes  int
	hold   chan struct{} // not nil: Write waits for it
}

func newRecorder() *recorder { return &recorder{begun: time.Now(), stop: make(chan struct{})} }

func (r *recorder) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%v %s", time.Since(r.begun), what))
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.hold != nil {
		<-r.hold
	}
	r.note(string(p))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += len(p)
	return len(p), nil
}

func (r *recorder) Read([]byte) (int, error) { <-r.stop; return 0, io.ErrUnexpectedEOF }
func (r *recorder) CloseWrite() error        { r.note("end"); return nil }
func (r *recorder) Close() error             { r.once.Do(func() { r.note("close"); close(r.stop) }); return nil }
func (r *recorder) Break()                   { r.once.Do(func() { r.note("break"); close(r.stop) }) }

func (r *recorder) LocalAddr() net.Addr              { return address{} }
func (r *recorder) RemoteAddr() net.Addr             { return address{} }
func (r *recorder) SetDeadline(time.Time) error      { return nil }
func (r *recorder) SetReadDeadline(time.Time) error  { return nil }
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

var _ transports.Conn = (*recorder)(nil)

// whole are faults that do not cut anything into pieces.
func whole(f Faults) Faults {
	f.Piece, f.Buffer = 1<<30, 1<<20
	return f
}

// expect runs use on a connection disturbed by f, waits an hour (of a clock in a synctest
// bubble), closes the connection, and compares what has arrived and when.
func expect(t *testing.T, f Faults, use func(t *testing.T, d *disturbed), want ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		d := disturb(r, f, 0, func() bool { return true })
		use(t, d)
		pass(time.Hour)
		d.Close()
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if got := strings.Join(r.events, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("arrived:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
		}
	})
}

// pass lets time go by, on the clock of a synctest bubble.
func pass(d time.Duration) { <-time.NewTimer(d).C }

func write(t *testing.T, d *disturbed, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if n, err := d.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("Write of %q gives %d, %v", s, n, err)
		}
	}
}

func TestNoFaults(t *testing.T) {
	expect(t, whole(Faults{}), func(t *testing.T, d *disturbed) {
		write(t, d, "a", "b")
		if err := d.CloseWrite(); err != nil {
			t.Error(err)
		}
	}, "0s a", "0s b", "0s end", "1h0m0s close")
}

func TestDelayIsForEveryByteAndTheEnd(t *testing.T) {
	expect(t, whole(Faults{Delay: time.Second}), func(t *testing.T, d *disturbed) {
		write(t, d, "a")
		pass(300 * time.Millisecond)
		write(t, d, "b")
		d.CloseWrite()
	}, "1s a", "1.3s b", "1.3s end", "1h0m0.3s close")
}

func TestBandwidthLetsBytesLeaveOneAfterTheOther(t *testing.T) {
	expect(t, whole(Faults{Bandwidth: 10, Delay: time.Minute}), func(t *testing.T, d *disturbed) {
		write(t, d, "ten bytes!", "five!")
		pass(10 * time.Second) // the line is free again
		write(t, d, "5more")
	}, "1m1s ten bytes!", "1m1.5s five!", "1m10.5s 5more", "1h0m10s close")
}

func TestStallHoldsWhatFollows(t *testing.T) {
	f := whole(Faults{Stall: time.Minute, StallEvery: 4, Seed: 2})
	p := newPlan(f, 0)
	at := p.stallAt
	first := p.next(100)
	stall := p.next(100).stall
	if int64(first.n) != at || stall < 30*time.Second || stall > 90*time.Second {
		t.Fatalf("stall of %v after %d bytes", stall, first.n)
	}
	text := "abcdefgh"
	expect(t, f, func(t *testing.T, d *disturbed) { write(t, d, text[:at+1]) },
		"0s "+text[:at], fmt.Sprintf("%v %s", stall, text[at:at+1]), "1h0m0s close")
}

// A piece with less jitter waits for those before it.
func TestJitterDoesNotReorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		d := disturb(r, Faults{Jitter: time.Second, Piece: 3, Buffer: 1 << 20, Seed: 5}, 0, func() bool { return true })
		text := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 20)
		write(t, d, text)
		pass(time.Hour)
		d.Close()
		synctest.Wait()
		var got strings.Builder
		moments := map[string]bool{}
		for _, e := range r.events[:len(r.events)-1] {
			at, piece, _ := strings.Cut(e, " ")
			moments[at] = true
			got.WriteString(piece)
		}
		if got.String() != text {
			t.Errorf("came as %q", &got)
		}
		if len(moments) < 3 {
			t.Errorf("all came at %d moments", len(moments))
		}
	})
}

func TestCutAfterBytes(t *testing.T) {
	f := whole(Faults{CutBytes: 6, Delay: time.Second, Seed: 3})
	at := newPlan(f, 0).cutAt
	text := "abcdefghijklmnop"
	expect(t, f, func(t *testing.T, d *disturbed) {
		write(t, d, text)
		if _, err := d.Read(make([]byte, 1)); !errors.Is(err, ErrCut) {
			t.Errorf("Read gives %v", err)
		}
		for range 2 {
			if _, err := d.Write([]byte("x")); !errors.Is(err, ErrCut) || !strings.Contains(err.Error(), fmt.Sprintf("after %d bytes", at)) {
				t.Errorf("Write gives %v", err)
			}
		}
		if err := d.CloseWrite(); !errors.Is(err, ErrCut) {
			t.Errorf("CloseWrite gives %v", err)
		}
	}, "1s "+text[:at], "1s break")
}

func TestCutAfterTime(t *testing.T) {
	expect(t, whole(Faults{CutAfter: 5 * time.Second, Delay: 4 * time.Second}), func(t *testing.T, d *disturbed) {
		write(t, d, "comes")
		pass(2 * time.Second)
		write(t, d, "is lost")
		pass(4 * time.Second)
		if _, err := d.Write([]byte("x")); !errors.Is(err, ErrCut) {
			t.Errorf("Write gives %v", err)
		}
	}, "4s comes", "5s break")
}

func TestLinkThatMayNotBeCutLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		d := disturb(r, whole(Faults{CutBytes: 6, CutAfter: time.Second, Seed: 3}), 0, func() bool { return false })
		write(t, d, "abcdefghijklmnop", "and more")
		pass(time.Minute)
		write(t, d, "!")
		d.Close()
		synctest.Wait()
		if r.bytes != 25 || !strings.HasSuffix(r.events[len(r.events)-1], "close") {
			t.Errorf("%q", r.events)
		}
	})
}

func TestBufferMakesWritersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		d := disturb(r, Faults{Delay: time.Second, Piece: 1 << 20, Buffer: 10}, 0, func() bool { return true })
		write(t, d, strings.Repeat("x", 25))
		// The third ten leave after the first two.
		if since := time.Since(r.begun); since != 2*time.Second {
			t.Errorf("the writer has waited %v", since)
		}
		d.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if n, err := d.Write(make([]byte, 20)); n != 5 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write of more than fits until the deadline gives %d, %v", n, err)
		}
		d.SetDeadline(time.Time{})
		write(t, d, "later")
		d.Close()
		<-r.stop
	})
}

// What Write has taken still goes out if the connection is closed at once.
func TestCloseLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		d := disturb(r, whole(Faults{Delay: time.Minute}), 0, func() bool { return true })
		write(t, d, "last words")
		d.Close()
		d.Close()
		if _, err := d.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write gives %v", err)
		}
		<-r.stop
		synctest.Wait()
		if got := strings.Join(r.events, "; "); got != "1m0s last words; 1m0s close" {
			t.Error(got)
		}
	})
}

func TestBreakLosesWhatWaits(t *testing.T) {
	expect(t, whole(Faults{Delay: time.Minute}), func(t *testing.T, d *disturbed) {
		write(t, d, "never")
		d.Break()
		if _, err := d.Write([]byte("x")); err == nil {
			t.Error("Write goes on")
		}
	}, "0s break")
}

// The writer's buffer may be overwritten at once.
func TestWriteKeepsNoSlice(t *testing.T) {
	expect(t, whole(Faults{Delay: time.Second}), func(t *testing.T, d *disturbed) {
		b := []byte("right")
		if _, err := d.Write(b); err != nil {
			t.Error(err)
		}
		copy(b, bytes.Repeat([]byte{'x'}, 5))
	}, "1s right", "1h0m0s close")
}
