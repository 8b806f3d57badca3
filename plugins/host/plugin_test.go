package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func TestLinkThroughPlugin(t *testing.T) {
	for _, name := range []string{"tcp", "unix"} {
		t.Run(name, func(t *testing.T) {
			w := builtin(name, "")
			w.NoMTLS = false
			p := w.start(t)
			if got := p.Transport().Info().Name; got != name {
				t.Errorf("Info says %q", got)
			}
			s := p.Status()
			if s.State != StateHealthy || s.PID == 0 || s.Starts != 1 || s.Path == "" {
				t.Errorf("status %+v", s)
			}
			a, b := pair(t, p, listen(t, p))
			exchange(t, a, b)
			if err := a.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if _, err := (stream{t, b}).Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("after CloseSend: %v", err)
			}
		})
	}
}

// The node hands descriptors on to procs.
func TestLinkCanBeDetached(t *testing.T) {
	p := builtin("unix", "").start(t)
	a, _ := pair(t, p, listen(t, p))
	if _, ok := a.(transports.Socket); !ok {
		t.Fatalf("a %T is no transports.Socket", a)
	}
}

// A plugin that is killed disturbs no transfer, and the next dial and accept work, at the
// same address.
func TestKillDisturbsNoTransfer(t *testing.T) {
	for _, name := range []string{"tcp", "unix"} {
		t.Run(name, func(t *testing.T) {
			w := builtin(name, "")
			p := w.start(t)
			l := listen(t, p)
			a, b := pair(t, p, l)
			const size = 48 << 20
			sent, received := sha256.New(), sha256.New()
			var passed atomic.Int64
			quarter := make(chan struct{})
			errs := make(chan error, 2)
			go func() {
				src := io.LimitReader(rand.NewChaCha8([32]byte{7}), size)
				_, err := io.CopyBuffer(stream{t, a}, io.TeeReader(src, sent), make([]byte, 64<<10))
				errs <- errors.Join(err, a.CloseSend())
			}()
			go func() {
				buf := make([]byte, 64<<10)
				for {
					n, err := (stream{t, b}).Read(buf)
					received.Write(buf[:n])
					before := passed.Add(int64(n)) - int64(n)
					if before < size/4 && before+int64(n) >= size/4 {
						close(quarter)
					}
					if err != nil {
						errs <- err
						return
					}
				}
			}()
			<-quarter
			pid := strike(t, p, syscall.SIGKILL)
			w.reach(t, StateBackoff)
			for range 2 {
				if err := <-errs; err != nil && err != io.EOF {
					t.Fatal(err)
				}
			}
			if passed.Load() != size || string(sent.Sum(nil)) != string(received.Sum(nil)) {
				t.Fatalf("%d of %d bytes came, checksums %x and %x", passed.Load(), size, sent.Sum(nil), received.Sum(nil))
			}
			c, d := pair(t, p, l)
			exchange(t, c, d)
			if s := p.Status(); s.PID == pid || s.State != StateHealthy || s.Starts != 2 {
				t.Errorf("after the restart: %+v", s)
			}
		})
	}
}

// Without a listener nobody needs the plugin until somebody dials.
func TestRestartIsLazy(t *testing.T) {
	w, other := builtin("tcp", ""), builtin("tcp", "")
	p, far := w.start(t), other.start(t)
	l := listen(t, far)
	strike(t, p, syscall.SIGKILL)
	s := w.reach(t, StateBackoff)
	if !errors.Is(s.LastErr, ErrCrashed) || !strings.Contains(s.LastErr.Error(), "killed by signal 9") {
		t.Errorf("the reason is %v", s.LastErr)
	}
	if p.Status().PID != 0 {
		t.Errorf("it was started though nobody needs it: %+v", p.Status())
	}
	a, b := pair(t, p, l)
	exchange(t, a, b)
	if got := p.Status().Starts; got != 2 {
		t.Errorf("%d starts, want 2", got)
	}
}

// A dial that kills the plugin is tried once more, not for ever, and its error says what
// happened.
func TestCrashingDial(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	_, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: "crash"})
	var te *transports.Error
	if !errors.As(err, &te) || !errors.Is(err, ErrCrashed) || !te.Retryable {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "dialled into the abyss") {
		t.Errorf("the error does not have the plugin's last words: %v", err)
	}
	if s := w.reach(t, StateBackoff); s.Failures != 1 {
		t.Errorf("first: %+v", s)
	}
	if s := w.reach(t, StateBackoff); s.Failures != 2 || s.Starts != 2 {
		t.Errorf("second: %+v", s)
	}
	w.log.wait(t, `"@level":"error"`, "panic: dialled into the abyss")
}

func TestBreakerOpens(t *testing.T) {
	w := builtin("tcp", "")
	w.Restart.Attempts, w.Restart.Cooldown = 2, time.Hour
	p := w.start(t)
	if _, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: "crash"}); err == nil {
		t.Fatal("no error")
	}
	w.reach(t, StateFailed)
	_, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: "127.0.0.1:1"})
	if !errors.Is(err, ErrFailed) || !errors.Is(err, ErrCrashed) {
		t.Errorf("an open breaker says %v", err)
	}
	if s := p.Status(); s.Starts != 2 || time.Until(s.NextTry) < 50*time.Minute {
		t.Errorf("status %+v", s)
	}
}

// A caller that cannot wait for the end of the backoff is told so at once.
func TestBackoffTooLong(t *testing.T) {
	w := builtin("tcp", "")
	w.Restart = Restart{Delay: time.Hour, MaxDelay: time.Hour, Healthy: time.Hour}
	p := w.start(t)
	p.Transport().Dial(soon(t), transports.DialSpec{Address: "crash"})
	w.reach(t, StateBackoff)
	w.reach(t, StateBackoff)
	_, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: "127.0.0.1:1"})
	if !errors.Is(err, ErrBackoff) {
		t.Errorf("got %v", err)
	}
}

// A plugin that hangs is found by its heartbeat, killed, and replaced.
func TestHungPluginIsReplaced(t *testing.T) {
	w := builtin("tcp", "")
	w.Heartbeat = -1 // we do it
	p := w.start(t)
	l := listen(t, p)
	a, b := pair(t, p, l)
	inst := p.cur
	inst.check(limit)
	if inst.useless() {
		t.Fatalf("a plugin that is well was killed: %v", inst.err)
	}
	pid := strike(t, p, syscall.SIGSTOP)
	for !inst.useless() { // it may have answered before it stopped
		inst.check(10 * time.Millisecond)
	}
	if s := w.reach(t, StateBackoff); !errors.Is(s.LastErr, ErrHung) {
		t.Errorf("the reason is %v", s.LastErr)
	}
	waitGone(t, pid)
	exchange(t, a, b)
	w.reach(t, StateHealthy)
	c, d := pair(t, p, l)
	exchange(t, c, d)
}

// Close of a plugin that hangs waits neither for ever nor for the two additional seconds of
// go-plugin.
func TestCloseOfHungPlugin(t *testing.T) {
	w := builtin("tcp", "")
	w.Heartbeat = -1
	p := w.start(t)
	pid := strike(t, p, syscall.SIGSTOP)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	waitGone(t, pid)
}

func TestClose(t *testing.T) {
	w := builtin("unix", "")
	p := w.start(t)
	l := listen(t, p)
	a, b := pair(t, p, l)
	pid := p.Status().PID
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	waitGone(t, pid)
	exchange(t, a, b)
	if _, err := l.Accept(soon(t)); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if _, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: l.Address()}); !errors.Is(err, ErrClosed) {
		t.Errorf("Dial after Close: %v", err)
	}
	if s := p.Status(); s.State != StateStopped || s.PID != 0 {
		t.Errorf("status %+v", s)
	}
	if errors.Is(p.Status().LastErr, ErrCrashed) {
		t.Errorf("an orderly end is called a crash: %v", p.Status().LastErr)
	}
}

// The context bounds a dial, and the plugin learns that nobody waits any more.
func TestDialIsAbandoned(t *testing.T) {
	p := builtin("tcp", "").start(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := p.Transport().Dial(ctx, transports.DialSpec{Address: "hang"})
		done <- err
	}()
	for {
		s, err := p.Stats(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		if s.Dials == 1 {
			break
		}
	}
	cancel()
	var te *transports.Error
	if err := <-done; !errors.Is(err, context.Canceled) || !errors.As(err, &te) {
		t.Errorf("got %v", err)
	}
	for {
		s, err := p.Stats(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		if s.DialErrors == 1 { // long before its own time limit of a minute
			return
		}
	}
}

func TestDialErrorIsTyped(t *testing.T) {
	p := builtin("tcp", "").start(t)
	l := listen(t, p)
	l.Close()
	_, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: "not an address"})
	var te *transports.Error
	if !errors.As(err, &te) || te.Code != transports.CodeAddress || te.Op != "dial" || te.Transport != "tcp" {
		t.Errorf("got %#v", err)
	}
}

// More peers than anybody accepts: queues are bounded everywhere, and all are
// served in the end.
func TestManyLinksWait(t *testing.T) {
	p := builtin("unix", "").start(t)
	l := listen(t, p)
	const many = 2*readyLinks + 20
	var dialled []link.Link
	for range many {
		x, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: l.Address()})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		dialled = append(dialled, x)
	}
	for range many {
		x, err := l.Accept(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
	}
	if len(dialled) != many {
		t.Fatal(len(dialled))
	}
}

func TestAcceptIsBoundByContext(t *testing.T) {
	p := builtin("unix", "").start(t)
	l := listen(t, p)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A transport whose links are of no kind that the SDK knows is refused with a reason.
func TestLinkOfNoKindIsUnsupported(t *testing.T) {
	p := builtin("tcp", "userspace").start(t)
	l := listen(t, p)
	_, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: l.Address()})
	var te *transports.Error
	if !errors.As(err, &te) || te.Code != transports.CodeUnsupported || !strings.Contains(te.Reason, "it can do no data plane; the node can do fd, peer-shm") {
		t.Errorf("got %v", err)
	}
}
