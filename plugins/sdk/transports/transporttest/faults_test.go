package transporttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// outcome runs one case and returns why it failed, "" if it passed.
func outcome(t *testing.T, name string, h transporttest.Harness) string {
	t.Helper()
	for _, c := range transporttest.Cases() {
		if c.Name != name {
			continue
		}
		o := c.Check(h, 0)
		if o.Verdict == transporttest.Skip {
			t.Errorf("%s is skipped: %s", name, o.Reason)
		}
		if o.Verdict == transporttest.Fail && !strings.Contains(o.Reason, c.ID+": ") && !strings.Contains(o.Reason, "panic") {
			t.Errorf("the failure of %s does not have its number: %s", c.ID, o.Reason)
		}
		return o.Reason
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
	{"spoils a byte of a long message", "sizes", func() *faulty {
		total := 0
		return &faulty{recv: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Recv(b)
			if before := total; before < 3<<20 && before+n >= 3<<20 {
				left := n - 1
				for _, s := range b {
					if left < len(s) {
						s[left] ^= 4
						break
					}
					left -= len(s)
				}
			}
			total += n
			return n, err
		}}
	}},
	{"loses its last bytes", "large", func() *faulty {
		total := 0
		return &faulty{send: func(l link.Link, b [][]byte) (int, error) {
			if total > 15<<20 {
				return link.Len(b), nil
			}
			n, err := l.Send(b)
			total += n
			return n, err
		}}
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
				l, _ = linktest.Pair(1)
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
	{"does not type the error of a dial that was given up", "dial-cancelled", func(*testing.T) *faultyTransport {
		dials := 0
		return &faultyTransport{dial: func(t transports.Transport, ctx context.Context, to transports.DialSpec) (link.Link, error) {
			if dials++; dials > 1 {
				return t.Dial(ctx, to)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	}},
	{"makes 300 links and no more", "short-links", func(*testing.T) *faultyTransport {
		links := 0
		return &faultyTransport{dial: func(t transports.Transport, ctx context.Context, to transports.DialSpec) (link.Link, error) {
			if links++; links > 300 {
				return nil, &transports.Error{Transport: "memory", Op: "dial", Code: transports.CodeResource, Reason: "no more"}
			}
			return t.Dial(ctx, to)
		}}
	}},
	{"serves 20 links at a time", "busy-links", func(*testing.T) *faultyTransport {
		links := 0
		return &faultyTransport{dial: func(t transports.Transport, ctx context.Context, to transports.DialSpec) (link.Link, error) {
			l, err := t.Dial(ctx, to)
			if links++; links > 20 {
				l = &faulty{Link: l, send: func(link.Link, [][]byte) (int, error) { return 0, nil }}
			}
			return l, err
		}}
	}},
	{"leaves goroutines behind", "no-memory-left", func(t *testing.T) *faultyTransport {
		end := make(chan struct{})
		t.Cleanup(func() { close(end) })
		return &faultyTransport{dial: func(tr transports.Transport, ctx context.Context, to transports.DialSpec) (link.Link, error) {
			go func() { <-end }()
			return tr.Dial(ctx, to)
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

// A fault in what links share.
func TestSharedWindowIsFound(t *testing.T) {
	var mu sync.Mutex
	full := false
	h := newMemory(func(l link.Link) link.Link {
		return &faulty{Link: l, send: func(l link.Link, b [][]byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			if full {
				return 0, nil
			}
			n, err := l.Send(b)
			full = n == 0 && link.Len(b) > 0
			return n, err
		}, recv: func(l link.Link, b [][]byte) (int, error) {
			n, err := l.Recv(b)
			mu.Lock()
			defer mu.Unlock()
			full = full && n == 0
			return n, err
		}, arm: func(l link.Link, want link.Interest) bool { return false }}
	})
	h.Patience = 300 * time.Millisecond
	if why := outcome(t, "stopped-reader", h); why == "" {
		t.Error("stopped-reader has not noticed")
	}
}

// A case that hangs, and one that panics, are failures with a reason.
func TestRecord(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(transporttest.T)
		want transporttest.Verdict
		why  string
	}{
		"passes":  {func(transporttest.T) {}, transporttest.Pass, ""},
		"fails":   {func(t transporttest.T) { t.Fatalf("wrong by %d", 3) }, transporttest.Fail, "wrong by 3"},
		"skips":   {func(t transporttest.T) { t.Skipf("no such thing") }, transporttest.Skip, "no such thing"},
		"panics":  {func(transporttest.T) { panic("boom") }, transporttest.Fail, "boom"},
		"hangs":   {func(transporttest.T) { select {} }, transporttest.Fail, "has not ended"},
		"cleans":  {func(t transporttest.T) { t.Cleanup(func() { t.Fatalf("in the end") }) }, transporttest.Fail, "in the end"},
		"is last": {func(t transporttest.T) { defer t.Fatalf("second"); t.Fatalf("first") }, transporttest.Fail, "first"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Hour
			if name == "hangs" {
				limit = time.Millisecond
			}
			o := transporttest.Record(c.f, limit)
			if o.Verdict != c.want || !strings.Contains(o.Reason, c.why) {
				t.Errorf("%+v, want %s because of %q", o, c.want, c.why)
			}
		})
	}
}

// A case has the number of its rule, which never changes; no two cases share one.
func TestNumbersAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range transporttest.Cases() {
		if seen[c.ID] || seen[c.Name] || !strings.HasPrefix(c.ID, "T-") {
			t.Errorf("%s %s is there twice, or has no number", c.ID, c.Name)
		}
		seen[c.ID], seen[c.Name] = true, true
	}
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
