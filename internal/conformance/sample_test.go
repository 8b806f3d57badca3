package conformance

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// connFaults make a connection with a fault of one that is sound. A plugin with one of them passes
// bytes on by itself.
var connFaults = map[string]func(transports.Conn) transports.Conn{
	"sound conn":       func(c transports.Conn) transports.Conn { return c },
	"promises fd":      func(c transports.Conn) transports.Conn { return c },
	"hangs midway":     func(c transports.Conn) transports.Conn { return &hanging{Conn: c, left: 100_000} },
	"ends when lost":   func(c transports.Conn) transports.Conn { return politely{c} },
	"close discards":   func(c transports.Conn) transports.Conn { return newDiscarding(c) },
	"flips one bit":    func(c transports.Conn) transports.Conn { return &flipping{Conn: c, at: 12 << 20} },
	"hoards in bursts": func(c transports.Conn) transports.Conn { return newHoard(c) },

	"swaps bytes":        func(c transports.Conn) transports.Conn { return &reading{Conn: c, spoil: swap} },
	"drops a byte":       func(c transports.Conn) transports.Conn { return &reading{Conn: c, spoil: drop} },
	"reads a byte twice": func(c transports.Conn) transports.Conn { return &twice{Conn: c} },
	"reads elsewhere":    func(c transports.Conn) transports.Conn { return elsewhere{c} },
	"takes half":         func(c transports.Conn) transports.Conn { return half{c} },
	"completes late":     func(c transports.Conn) transports.Conn { return newLate(c) },
	"ends both ways":     func(c transports.Conn) transports.Conn { return endsBoth{c} },
	"ends nothing":       func(c transports.Conn) transports.Conn { return endsNothing{c} },
	"never closes":       func(c transports.Conn) transports.Conn { return neverCloses{c} },
	"keeps memory":       func(c transports.Conn) transports.Conn { keepMemory(); return c },
	"keeps threads":      func(c transports.Conn) transports.Conn { go keepThread(); return c },
	"ends by itself":     func(c transports.Conn) transports.Conn { time.AfterFunc(hasty/40, func() { os.Exit(3) }); return c },
	"looks all the time": func(c transports.Conn) transports.Conn { go spin(); return c },
}

// wrap puts the fault into a link, if it is one of connections.
func (f *faulty) wrap(l link.Link) (link.Link, error) {
	fault, ok := connFaults[f.fault]
	if !ok {
		return l, nil
	}
	fd, _, err := l.(transports.Socket).Detach()
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "link")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return conn.New(fault(c.(*net.TCPConn))), nil
}

// hanging stops reading after so many bytes.
type hanging struct {
	transports.Conn
	left int
}

func (h *hanging) Read(b []byte) (int, error) {
	if h.left == 0 {
		select {}
	}
	n, err := h.Conn.Read(b[:min(len(b), h.left)])
	h.left -= n
	return n, err
}

// politely ends a stream that was lost as if it were whole.
type politely struct{ transports.Conn }

func (p politely) Break() { _ = p.CloseWrite() }

// discarding writes in the background, and throws away at Close what is not written yet.
type discarding struct {
	transports.Conn
	queue  chan []byte
	closed chan struct{}
	once   sync.Once
}

func newDiscarding(c transports.Conn) *discarding {
	d := &discarding{Conn: c, queue: make(chan []byte, 100), closed: make(chan struct{})}
	go func() {
		for b := range d.queue {
			<-time.After(time.Millisecond) // slow on purpose
			select {
			case <-d.closed:
				return
			default:
			}
			if _, err := d.Conn.Write(b); err != nil {
				return
			}
		}
		_ = d.Conn.CloseWrite()
	}()
	return d
}

func (d *discarding) Write(b []byte) (int, error) {
	d.queue <- slices.Clone(b)
	return len(b), nil
}

func (d *discarding) CloseWrite() error {
	close(d.queue)
	return nil
}

func (d *discarding) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

// flipping spoils one bit far behind the beginning.
type flipping struct {
	transports.Conn
	at int
}

func (f *flipping) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.at >= 0 && f.at < n {
		b[f.at] ^= 16
	}
	f.at -= n
	return n, err
}

// hoard reads everything that comes into memory of its own, and what it writes goes in bursts.
type hoard struct {
	transports.Conn
	mu   sync.Mutex
	more *sync.Cond
	kept []byte
	err  error
	sent int // since the last pause
}

// A burst, and the pause after it, which is longer than some polls.
const (
	burst      = 12 << 20
	burstPause = 350 * time.Millisecond
)

func newHoard(c transports.Conn) *hoard {
	h := &hoard{Conn: c}
	h.more = sync.NewCond(&h.mu)
	go h.fetch()
	return h
}

func (h *hoard) fetch() {
	buf := make([]byte, 64<<10)
	for {
		n, err := h.Conn.Read(buf)
		h.mu.Lock()
		h.kept = append(h.kept, buf[:n]...)
		h.err = err
		h.mu.Unlock()
		h.more.Broadcast()
		if err != nil {
			return
		}
	}
}

func (h *hoard) Write(b []byte) (int, error) {
	if h.sent >= burst {
		h.sent = 0
		<-time.After(burstPause)
	}
	n, err := h.Conn.Write(b)
	h.sent += n
	return n, err
}

func (h *hoard) Read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.kept) == 0 && h.err == nil {
		h.more.Wait()
	}
	if len(h.kept) == 0 {
		return 0, h.err
	}
	n := copy(b, h.kept)
	h.kept = h.kept[n:]
	return n, nil
}

func (f *faulty) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	if f.fault == "listens later" && os.Mkdir(os.Getenv(asSeen), 0o700) == nil {
		return nil, errors.New("not yet")
	}
	ln, err := f.Transport.Listen(ctx, at)
	if err != nil {
		return nil, err
	}
	if f.fault == "leaks listeners" {
		leaked, err := f.Transport.Listen(ctx, transports.ListenSpec{Host: at.Host})
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		f.leaked = append(f.leaked, leaked) // or the garbage collector would close it
		f.mu.Unlock()
	}
	return &faultyListener{Listener: ln, f: f}, nil
}

// faultyListener is a listener with a fault.
type faultyListener struct {
	transports.Listener
	f *faulty
}

func (l *faultyListener) Accept(ctx context.Context) (link.Link, error) {
	if l.f.fault == "stays open" {
		ctx = context.WithoutCancel(ctx)
	}
	made, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	if l.f.fault == "panics" {
		panic("no such peer")
	}
	return l.f.wrap(made)
}

func (l *faultyListener) Close() error {
	switch l.f.fault {
	case "stays open":
		return nil
	case "close hangs":
		select {}
	}
	return l.Listener.Close()
}

func (l *faultyListener) Address() string {
	a := l.Listener.Address()
	switch l.f.fault {
	case "wildcard":
		return strings.ReplaceAll(a, "127.0.0.1", "0.0.0.0")
	case "wrong port":
		at, more, several := strings.Cut(a, "/") // how many connections a link may have
		wrong := netip.AddrPortFrom(netip.MustParseAddrPort(at).Addr(), 1).String()
		if several {
			wrong += "/" + more
		}
		return wrong
	}
	return a
}

// Faults of connections that a plugin passes on are found, and a sound one passes the same rules.
func TestConnFaultsAreFound(t *testing.T) {
	rules := []struct{ fault, id, words string }{
		{"hangs midway", "P-SPEED-01", "a transfer hangs"},
		{"ends when lost", "P-LINK-01", "EOF"},
		{"close discards", "P-LINK-02", "bytes arrive, and then"},
		{"flips one bit", "T-SIZE-03", "of the stream is"},
		{"hoards in bursts", "P-LEAK-02", "nobody reads"},
		{"hoards in bursts", "T-PRESS-01", "nobody reads"},
		{"swaps bytes", "T-ORDER-02", "of the stream is"},
		{"drops a byte", "T-ORDER-02", "of the stream is"},
		{"reads a byte twice", "T-ORDER-02", "of the stream is"},
		{"reads elsewhere", "T-ORDER-02", "of the stream is"},
		{"takes half", "T-ORDER-02", ""}, // the wrong bytes, or too few of them
		{"completes late", "T-SIZE-02", "of the stream is"},
		{"ends both ways", "T-CLOSE-01", "io.EOF"},
		{"ends nothing", "T-CLOSE-01", "io.EOF"},
		{"never closes", "P-LEAK-01", "descriptors"},
		{"keeps memory", "P-LEAK-01", "of its own"},
		{"keeps threads", "P-LEAK-01", "threads"},
		{"looks all the time", "P-LIFE-07", "wanted the processor"},
		{"ends by itself", "P-LIFE-07", "process has ended"},
	}
	var ids []string
	for _, c := range rules {
		ids = append(ids, c.id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	sound := judged(t, "sound conn", strings.Join(ids, "|"), transports.PlaneRing)
	if sound.Verdict != transporttest.Pass || sound.Passed != len(ids) {
		t.Errorf("the sound plugin: %+v", sound.Results)
	}
	for _, c := range rules {
		t.Run(c.fault+" "+c.id, func(t *testing.T) {
			r := judged(t, c.fault, c.id, transports.PlaneRing)
			if r.Verdict != transporttest.Fail || r.Failed != 1 {
				t.Fatalf("not found: %+v", r.Results)
			}
			if why := r.Results[0].Reason; !strings.HasPrefix(why, c.id+": ") || !strings.Contains(why, c.words) || !strings.Contains(why, "(the rule: ") || r.Results[0].Remedy == "" {
				t.Errorf("the reason is %q, the remedy %q", why, r.Results[0].Remedy)
			}
		})
	}
}

// Dials that take long, each within its time, do not hang although all together take longer than a
// case waits.
func TestLateDialsDoNotHang(t *testing.T) {
	r, err := Run(t.Context(), subject("late"), Options{Run: regexp.MustCompile("P-LIFE-05"), Planes: onlyFD, patience: hasty})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != transporttest.Pass || r.Passed != 1 {
		t.Errorf("%+v", r.Results)
	}
}

// A crash is told with the words of the process, whatever the case was waiting for.
func TestCrashIsTold(t *testing.T) {
	r := judged(t, "panics", "T-ORDER-01|P-CALL-05")
	if r.Verdict != transporttest.Fail {
		t.Fatalf("%+v", r.Results)
	}
	for _, x := range r.Results {
		if x.Verdict == transporttest.Fail && !strings.Contains(x.Reason, "panic: no such peer") {
			t.Errorf("%s: %s", x.ID, x.Reason)
		}
	}
}

// After cases that hung others wait less, and after many the rest is not tried.
func TestTrust(t *testing.T) {
	r := trust{most: patience}
	hung := transporttest.Outcome{Verdict: transporttest.Fail, Took: patience}
	slow := transporttest.Outcome{Verdict: transporttest.Pass, Took: patience}
	r.saw(slow, patience, slowEnd)
	if r.hung != 0 || r.patience() != patience {
		t.Errorf("a slow machine has hung: %+v", r)
	}
	for range hungSome {
		r.saw(hung, r.patience(), 0)
	}
	if r.patience() >= patience || r.limit() >= 4*patience || r.lost() {
		t.Errorf("%+v waits %v and %v", r, r.patience(), r.limit())
	}
	for range hungMany - hungSome {
		r.saw(slow, r.patience(), slowEnd)
	}
	if !r.lost() {
		t.Errorf("%+v", r)
	}
}
