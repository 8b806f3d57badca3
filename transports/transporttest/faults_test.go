package transporttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/transporttest"
)

// recorder is a T that notes how a case ends.
type recorder struct {
	mu              sync.Mutex
	cleanups        []func()
	failed, skipped string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome runs one case and says why it failed, if it did.
func outcome(t *testing.T, name string, h transporttest.Harness) string {
	t.Helper()
	for _, c := range transporttest.Cases() {
		if c.Name != name {
			continue
		}
		r := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(r, h)
		}()
		<-done
		for i := len(r.cleanups) - 1; i >= 0; i-- {
			r.cleanups[i]()
		}
		if r.skipped != "" {
			t.Errorf("%s is skipped: %s", name, r.skipped)
		}
		return r.failed
	}
	t.Fatalf("there is no case %s", name)
	return ""
}

// faulty is a link with a fault: the functions that are set replace the link's.
type faulty struct {
	link.Link
	send, recv func(l link.Link, batch [][]byte) (int, error)
	closeSend  func(l link.Link) error
	close      func(l link.Link) error
	handle     func(l link.Link) int
	arm        func(l link.Link, want link.Interest) bool
	limits     func(l link.Link) link.Limits
}

func (f *faulty) Send(b [][]byte) (int, error) {
	if f.send != nil {
		return f.send(f.Link, b)
	}
	return f.Link.Send(b)
}

func (f *faulty) Recv(b [][]byte) (int, error) {
	if f.recv != nil {
		return f.recv(f.Link, b)
	}
	return f.Link.Recv(b)
}

func (f *faulty) CloseSend() error {
	if f.closeSend != nil {
		return f.closeSend(f.Link)
	}
	return f.Link.CloseSend()
}

func (f *faulty) Close() error {
	if f.close != nil {
		return f.close(f.Link)
	}
	return f.Link.Close()
}

func (f *faulty) Handle() int {
	if f.handle != nil {
		return f.handle(f.Link)
	}
	return f.Link.Handle()
}

func (f *faulty) Arm(want link.Interest) bool {
	if f.arm != nil {
		return f.arm(f.Link, want)
	}
	return f.Link.Arm(want)
}

func (f *faulty) Limits() link.Limits {
	if f.limits != nil {
		return f.limits(f.Link)
	}
	return f.Link.Limits()
}

// alwaysReady is a descriptor that poll(2) reports readable and writable.
var alwaysReady = sync.OnceValue(func() *os.File {
	f, err := os.OpenFile("/dev/zero", os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	return f
})

var linkFaults = []struct {
	fault string
	found string // the case that must notice it
	make  func() *faulty
}{
	{"loses a byte", "random-sizes", func() *faulty {
		total := 0
		return &faulty{recv: func(l link.Link, b [][]byte) (int, error) {
			if n := total; n < 150 {
				k, err := l.Recv(b)
				if total += k; total >= 150 {
					l.Recv([][]byte{make([]byte, 1)})
				}
				return k, err
			}
			return l.Recv(b)
		}}
	}},
	{"swaps the slices of a batch", "batches", func() *faulty {
		return &faulty{send: func(l link.Link, b [][]byte) (int, error) {
			if len(b) > 2 {
				b[1], b[2] = b[2], b[1]
			}
			return l.Send(b)
		}}
	}},
	{"keeps the caller's slice", "random-sizes", func() *faulty {
		var kept []byte
		return &faulty{send: func(l link.Link, b [][]byte) (int, error) {
			for len(kept) > 0 {
				n, err := l.Send([][]byte{kept})
				if err != nil || n == 0 {
					return 0, err
				}
				kept = kept[n:]
			}
			for _, s := range b {
				if len(s) > 0 {
					kept = s
					return len(s), nil
				}
			}
			return 0, nil
		}}
	}},
	{"says that it took more than there was", "first-bytes", func() *faulty {
		return &faulty{send: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Send(b)
			return n + 1, err
		}}
	}},
	{"takes bytes without bound", "back-pressure", func() *faulty {
		return &faulty{send: func(_ link.Link, b [][]byte) (int, error) { return link.Len(b), nil }}
	}},
	{"reads no room as the end", "no-bytes", func() *faulty {
		return &faulty{recv: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Recv(b)
			if n == 0 && link.Len(b) == 0 {
				err = io.EOF
			}
			return n, err
		}}
	}},
	{"ends nothing", "half-close", func() *faulty {
		return &faulty{closeSend: func(link.Link) error { return nil }}
	}},
	{"ends both directions", "half-close", func() *faulty {
		return &faulty{closeSend: func(l link.Link) error { return l.Close() }}
	}},
	{"reports the end once", "half-close", func() *faulty {
		ended := false
		return &faulty{recv: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Recv(b)
			if err == io.EOF && ended {
				return 0, nil
			}
			ended = ended || err == io.EOF
			return n, err
		}}
	}},
	{"sends after its end", "send-after-end", func() *faulty {
		return &faulty{send: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Send(b)
			if errors.Is(err, link.ErrClosed) {
				return link.Len(b), nil
			}
			return n, err
		}}
	}},
	{"says io.EOF after Close", "after-close", func() *faulty {
		return &faulty{recv: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Recv(b)
			if errors.Is(err, link.ErrClosed) {
				err = io.EOF
			}
			return n, err
		}}
	}},
	{"closes only once", "after-close", func() *faulty {
		closed := false
		return &faulty{close: func(l link.Link) error {
			if closed {
				return link.ErrClosed
			}
			closed = true
			return l.Close()
		}}
	}},
	{"does not close", "peer-gone", func() *faulty {
		return &faulty{close: func(link.Link) error { return nil }}
	}},
	{"sends to nobody for ever", "peer-gone", func() *faulty {
		return &faulty{send: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Send(b)
			if errors.Is(err, link.ErrBroken) {
				return 0, nil
			}
			return n, err
		}}
	}},
	{"changes its error", "error-is-final", func() *faulty {
		calls := 0
		return &faulty{send: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Send(b)
			if calls++; errors.Is(err, link.ErrBroken) {
				err = fmt.Errorf("%w, call %d", err, calls)
			}
			return n, err
		}}
	}},
	{"is never quiet", "readable", func() *faulty {
		return &faulty{handle: func(link.Link) int { return int(alwaysReady().Fd()) }}
	}},
	{"does not tell of bytes", "readable", func() *faulty {
		return &faulty{arm: func(link.Link, link.Interest) bool { return false }}
	}},
	{"promises room that it has not", "writable", func() *faulty {
		return &faulty{arm: func(_ link.Link, want link.Interest) bool { return want&link.Writable != 0 }}
	}},
	{"changes its limits", "limits", func() *faulty {
		calls := 0
		return &faulty{limits: func(link.Link) link.Limits { calls++; return link.Limits{Batch: calls} }}
	}},
}

func TestLinkFaultsAreFound(t *testing.T) {
	for _, f := range linkFaults {
		t.Run(f.fault, func(t *testing.T) {
			sound := newMemory(func(l link.Link) link.Link { return l })
			if why := outcome(t, f.found, sound); why != "" {
				t.Fatalf("%s fails on a sound link: %s", f.found, why)
			}
			h := newMemory(func(l link.Link) link.Link {
				bad := f.make()
				bad.Link = l
				return bad
			})
			h.Patience = 300 * time.Millisecond
			why := outcome(t, f.found, h)
			if why == "" {
				t.Errorf("%s has not noticed", f.found)
			}
			t.Logf("%s: %s", f.found, why)
		})
	}
}

// faultyTransport replaces the memory transport's calls that are set.
type faultyTransport struct {
	transports.Transport
	dial   func(transports.Transport, context.Context, transports.DialSpec) (link.Link, error)
	accept func(transports.Listener, context.Context) (link.Link, error)
	close  func(transports.Listener) error
	addr   func(transports.Listener) string
}

func (f *faultyTransport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	if f.dial != nil {
		return f.dial(f.Transport, ctx, to)
	}
	return f.Transport.Dial(ctx, to)
}

func (f *faultyTransport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	ln, err := f.Transport.Listen(ctx, at)
	return &faultyListener{ln, f}, err
}

type faultyListener struct {
	transports.Listener
	f *faultyTransport
}

func (l *faultyListener) Accept(ctx context.Context) (link.Link, error) {
	if l.f.accept != nil {
		return l.f.accept(l.Listener, ctx)
	}
	return l.Listener.Accept(ctx)
}

func (l *faultyListener) Close() error {
	if l.f.close != nil {
		return l.f.close(l.Listener)
	}
	return l.Listener.Close()
}

func (l *faultyListener) Address() string {
	if l.f.addr != nil {
		return l.f.addr(l.Listener)
	}
	return l.Listener.Address()
}

var transportFaults = []struct {
	fault string
	found string
	make  func(t *testing.T) *faultyTransport
}{
	{"does not type its errors", "dial-nobody", func(*testing.T) *faultyTransport {
		return &faultyTransport{dial: func(t transports.Transport, ctx context.Context, to transports.DialSpec) (link.Link, error) {
			l, err := t.Dial(ctx, to)
			if err != nil {
				err = errors.New(err.Error())
			}
			return l, err
		}}
	}},
	{"links to nobody", "dial-nonsense", func(*testing.T) *faultyTransport {
		return &faultyTransport{dial: func(t transports.Transport, ctx context.Context, to transports.DialSpec) (link.Link, error) {
			l, err := t.Dial(ctx, to)
			if err != nil {
				l, _ = link.Pair(1)
				err = nil
			}
			return l, err
		}}
	}},
	{"gives addresses with spaces", "address", func(*testing.T) *faultyTransport {
		return &faultyTransport{addr: func(l transports.Listener) string { return "at " + l.Address() }}
	}},
	{"closes the listener when an Accept is cancelled", "accept-cancelled", func(*testing.T) *faultyTransport {
		return &faultyTransport{accept: func(l transports.Listener, ctx context.Context) (link.Link, error) {
			made, err := l.Accept(ctx)
			if err != nil {
				l.Close()
			}
			return made, err
		}}
	}},
	{"says something else than ErrClosed", "accept-closed", func(*testing.T) *faultyTransport {
		return &faultyTransport{accept: func(l transports.Listener, ctx context.Context) (link.Link, error) {
			made, err := l.Accept(ctx)
			if errors.Is(err, link.ErrClosed) {
				err = errors.New("use of closed network connection")
			}
			return made, err
		}}
	}},
	{"accepts the same link twice", "many-dials", func(*testing.T) *faultyTransport {
		var mu sync.Mutex
		var spare link.Link
		return &faultyTransport{accept: func(l transports.Listener, ctx context.Context) (link.Link, error) {
			mu.Lock()
			defer mu.Unlock()
			if made := spare; made != nil {
				spare = nil
				l.Accept(ctx)
				return made, nil
			}
			made, err := l.Accept(ctx)
			spare = made
			return made, err
		}}
	}},
	{"leaves descriptors open", "no-descriptors-left", func(t *testing.T) *faultyTransport {
		return &faultyTransport{dial: func(tr transports.Transport, ctx context.Context, to transports.DialSpec) (link.Link, error) {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { f.Close() })
			return tr.Dial(ctx, to)
		}}
	}},
}

func TestTransportFaultsAreFound(t *testing.T) {
	for _, f := range transportFaults {
		t.Run(f.fault, func(t *testing.T) {
			h := newMemory(func(l link.Link) link.Link { return l })
			if why := outcome(t, f.found, h); why != "" {
				t.Fatalf("%s fails on a sound transport: %s", f.found, why)
			}
			bad := f.make(t)
			bad.Transport = h.Transport
			h.Transport = bad
			h.Patience = 300 * time.Millisecond
			why := outcome(t, f.found, h)
			if why == "" {
				t.Errorf("%s has not noticed", f.found)
			}
			t.Logf("%s: %s", f.found, why)
		})
	}
}
