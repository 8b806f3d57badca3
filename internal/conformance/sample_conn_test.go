package conformance

import (
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// later is behind how many bytes faults begin, so that greetings pass.
const later = 40

// reading spoils what a Read has read, once.
type reading struct {
	transports.Conn
	seen  int
	done  bool
	spoil func(b []byte) (n int)
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.seen += n
	if !r.done && r.seen > later && n > 2 && b[0] != b[1] {
		r.done = true
		n = r.spoil(b[:n])
	}
	return n, err
}

func swap(b []byte) int {
	b[0], b[1] = b[1], b[0]
	return len(b)
}

func drop(b []byte) int { return copy(b, b[1:]) }

// twice gives a byte a second time.
type twice struct {
	transports.Conn
	seen  int
	last  byte
	again bool
	done  bool
}

func (w *twice) Read(b []byte) (int, error) {
	if w.again && len(b) > 0 {
		w.again, w.done = false, true
		b[0] = w.last
		return 1, nil
	}
	n, err := w.Conn.Read(b)
	if w.seen += n; w.seen > later && n > 0 && !w.done {
		w.last, w.again = b[n-1], true
	}
	return n, err
}

// elsewhere puts what it reads one byte behind where it belongs, as a write to the wrong remote
// memory does.
type elsewhere struct{ transports.Conn }

func (w elsewhere) Read(b []byte) (int, error) {
	if len(b) < 2 {
		return w.Conn.Read(b)
	}
	n, err := w.Conn.Read(b[:len(b)-1])
	copy(b[1:], b[:n])
	return n, err
}

// half takes the part that was written for the whole.
type half struct{ transports.Conn }

func (h half) Write(b []byte) (int, error) {
	if len(b) < later {
		return h.Conn.Write(b)
	}
	_, err := h.Conn.Write(b[:len(b)/2])
	return len(b), err
}

// lateConn writes when Write has returned, from memory that its caller uses again.
type lateConn struct {
	transports.Conn
	queue chan []byte
	ended chan struct{}
	once  sync.Once
}

func newLate(c transports.Conn) *lateConn {
	l := &lateConn{Conn: c, queue: make(chan []byte, 1000), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		for b := range l.queue {
			<-time.After(time.Millisecond) // slow on purpose
			if _, err := l.Conn.Write(b); err != nil {
				return
			}
		}
	}()
	return l
}

func (l *lateConn) Write(b []byte) (int, error) {
	select {
	case l.queue <- b:
		return len(b), nil
	case <-l.ended:
		return 0, net.ErrClosed
	}
}

func (l *lateConn) CloseWrite() error {
	l.once.Do(func() { close(l.queue) })
	<-l.ended
	return l.Conn.CloseWrite()
}

// endsBoth ends both directions where one was to end.
type endsBoth struct{ transports.Conn }

func (e endsBoth) CloseWrite() error { return e.Close() }

// endsNothing says that it has ended a direction.
type endsNothing struct{ transports.Conn }

func (endsNothing) CloseWrite() error { return nil }

// neverCloses waits in Close for what does not come.
type neverCloses struct{ transports.Conn }

func (neverCloses) Close() error { select {} }

// hoarded is memory that nobody gives back.
var hoarded struct {
	mu   sync.Mutex
	list [][]byte
}

func keepMemory() {
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = byte(i)
	}
	hoarded.mu.Lock()
	defer hoarded.mu.Unlock()
	hoarded.list = append(hoarded.list, b)
}

// keepThread has a thread of its own and does not end.
func keepThread() {
	runtime.LockOSThread()
	select {}
}

// spin looks for something all the time.
func spin() {
	for {
		runtime.Gosched()
	}
}

// falsePlanes are the only planes that plugins with these faults list. The first one's links are
// sockets, the second one's are connections in its process.
var falsePlanes = map[string]transports.DataPlane{
	"hides fd":    transports.PlaneRing,
	"promises fd": transports.PlaneFD,
	"odd plane":   "carrier-pigeon",
}

// falseDescriptors make of a link's descriptor what a plugin with the fault hands out.
var falseDescriptors = map[string]func(fd int) int{
	"closed descriptor": func(fd int) int {
		_ = unix.Close(fd)
		return fd
	},
	"another's descriptor": func(fd int) int {
		_ = unix.Close(fd)
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			panic(err)
		}
		return pair[0]
	},
}

type detached struct {
	transports.Socket
	of func(fd int) int
}

func (d detached) Detach() (int, []byte, error) {
	fd, preread, err := d.Socket.Detach()
	if err != nil {
		return fd, preread, err
	}
	return d.of(fd), preread, nil
}

// Planes that are not what Capabilities says are found, on each plane that can be chosen.
func TestPlaneFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		fault string
		plane transports.DataPlane
		words string // empty: it is sound
	}{
		{"", transports.PlaneFD, ""},
		{"", transports.PlaneRing, ""},
		{"sound conn", transports.PlaneRing, ""},
		{"hides fd", transports.PlaneRing, "which can leave by fd; Capabilities lists ring"},
		{"promises fd", transports.PlaneFD, "a connection inside the plugin"},
		{"closed descriptor", transports.PlaneFD, "bad file descriptor"},
		{"another's descriptor", transports.PlaneFD, "not the two ends of one link"},
	} {
		t.Run(c.fault+" "+string(c.plane), func(t *testing.T) {
			r := judged(t, c.fault, anyPlanes, c.plane)
			if c.words == "" {
				if r.Verdict != transporttest.Pass || r.Passed != 1 {
					t.Errorf("%+v", r.Results)
				}
				return
			}
			x := r.Results[0]
			if r.Failed != 1 || !strings.HasPrefix(x.Reason, anyPlanes+": ") || !strings.Contains(x.Reason, c.words) ||
				!strings.Contains(x.Reason, "(the rule: ") || !strings.Contains(x.Remedy, "Capabilities") {
				t.Errorf("not found: %+v", x)
			}
		})
	}
}
