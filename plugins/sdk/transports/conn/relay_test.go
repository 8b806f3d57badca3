package conn_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// relayed is a link whose bytes a relay takes to a socket, at whose other end is peer.
type relayed struct {
	*ring.Link
	pump   *conn.Pump
	peer   *socket.Link
	region int // a descriptor of it
	ended  chan error
}

func relay(t *testing.T, size int) *relayed {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	far, err := socket.New(fds[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &relayed{ended: make(chan error, 1)}
	if r.peer, err = socket.New(fds[1], nil); err != nil {
		t.Fatal(err)
	}
	pump, region, sock, err := conn.NewRelay(size, far)
	if err != nil {
		t.Fatal(err)
	}
	r.pump = pump
	if r.region, err = unix.FcntlInt(uintptr(region), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	if r.Link, err = ring.New(region, sock, 1); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- pump.Run() }()
	t.Cleanup(func() {
		r.Link.Close()
		r.peer.Close()
		unix.Close(r.region)
	})
	return r
}

// end waits for the end of the pump.
func (r *relayed) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(limit):
		t.Fatal("the relay goes on")
		return nil
	}
}

// asleep waits until no relay polls.
func asleep(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(limit); conn.Awake() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the relay does not sleep")
		}
	}
}

// waits tries something until the relay sleeps and waits for some of what Waits says.
func (r *relayed) waits(t *testing.T, try func(), want ...string) {
	t.Helper()
	for deadline := time.Now().Add(limit / 8); time.Now().Before(deadline); runtime.Gosched() {
		if slices.Contains(want, conn.Waits(r.pump)) {
			return
		}
		try()
	}
	t.Fatalf("it waits for %q, not for %q", conn.Waits(r.pump), want)
}

// send sends all of b, from a goroutine of its own, and then ends the stream.
func send(t *testing.T, l link.Link, b []byte) {
	for len(b) > 0 {
		n, err := await(t, l, link.Writable, func() (int, error) { return l.Send([][]byte{b}) })
		if err != nil {
			t.Error(err)
			return
		}
		b = b[n:]
	}
	if err := l.CloseSend(); err != nil {
		t.Error(err)
	}
}

// Both directions have all their bytes, and their ends, at the same time, with pauses in which
// everybody sleeps.
func TestRelayPassesBothDirections(t *testing.T) {
	r := relay(t, 4096)
	random := rand.NewChaCha8([32]byte{1})
	sent := map[link.Link][]byte{r.Link: make([]byte, 1<<20), r.peer: make([]byte, 3<<19)}
	for l, b := range sent {
		_, _ = random.Read(b)
		go send(t, l, b)
	}
	for l, want := range map[link.Link][]byte{r.Link: sent[r.peer], r.peer: sent[r.Link]} {
		asleep(t) // the ring and the socket are full
		got, buf := []byte(nil), make([]byte, 10000)
		var err error
		for n := 0; err == nil; n, err = recv(t, l, buf) {
			got = append(got, buf[:n]...)
		}
		if err != io.EOF || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
	}
	r.Link.Close()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

// Single bytes come through whether the relay polls or sleeps meanwhile.
func TestRelayWakes(t *testing.T) {
	r := relay(t, 4096)
	b := make([]byte, 1)
	for i := range 200 {
		if i%4 == 0 {
			asleep(t)
		}
		for _, way := range [][2]link.Link{{r.Link, r.peer}, {r.peer, r.Link}} {
			if n, err := way[0].Send([][]byte{{byte(i)}}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if n, err := recv(t, way[1], b); n != 1 || err != nil || b[0] != byte(i) {
				t.Fatal(n, err, b)
			}
		}
	}
}

// A user that dies without having ended its stream breaks the connection, after its last bytes; a
// user that has closed the link ends it.
func TestRelaysUserLeaves(t *testing.T) {
	for name, leave := range map[string]func(*ring.Link){
		"dies":                   (*ring.Link).Break,
		"closes":                 func(l *ring.Link) { _ = l.Close() },
		"ends, and closes later": func(l *ring.Link) { _ = l.CloseSend(); asleep(t); _ = l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := relay(t, 4096)
			if _, err := r.Send([][]byte{[]byte("last words")}); err != nil {
				t.Fatal(err)
			}
			leave(r.Link)
			b := make([]byte, 20)
			if n, err := recv(t, r.peer, b); string(b[:n]) != "last words" || err != nil {
				t.Fatalf("%q, %v", b[:n], err)
			}
			err := r.end(t)
			if (name == "dies") != errors.Is(err, link.ErrBroken) {
				t.Errorf("%v", err)
			}
			if err == nil && !r.pump.Left() {
				t.Error("the user has not left")
			}
		})
	}
}

// A user that dies is noticed, too, while neither the connection nor the ring takes anything; the
// relay sleeps until the peer has taken what there was.
func TestRelaysUserDiesWhileAllIsFull(t *testing.T) {
	r := relay(t, 4096)
	fill := [][]byte{make([]byte, 1<<16)}
	const writable = "1c" // and the end, which is always waited for
	r.waits(t, func() {
		_, _ = r.Send(fill)
		_, _ = r.peer.Send(fill)
	}, "ring "+writable+" connection "+writable+" ", "connection "+writable+" ring "+writable+" ")
	r.Break()
	r.waits(t, func() {}, "connection "+writable+" ")
	buf := make([]byte, 1<<16)
	var err error
	for err == nil {
		_, err = recv(t, r.peer, buf)
	}
	if err := r.end(t); !errors.Is(err, link.ErrBroken) {
		t.Errorf("%v", err)
	}
}

// A peer that ends its stream is told to the user as an end, one that breaks the connection as a
// break.
func TestRelaysPeerLeaves(t *testing.T) {
	r := relay(t, 4096)
	if err := r.peer.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := recv(t, r.Link, make([]byte, 1)); err != io.EOF {
		t.Errorf("%v", err)
	}
	r.peer.Close()
	_, err := await(t, r.Link, link.Writable, func() (int, error) {
		_, err := r.Send([][]byte{{1}})
		return 0, err
	})
	if !errors.Is(err, link.ErrBroken) {
		t.Errorf("%v", err)
	}
	if err := r.end(t); !errors.Is(err, link.ErrBroken) {
		t.Errorf("%v", err)
	}
}

// Close ends a relay that sleeps, and breaks both ends.
func TestRelayCloses(t *testing.T) {
	r := relay(t, 4096)
	asleep(t)
	r.pump.Close()
	if err := r.end(t); err == nil {
		t.Error("no error")
	}
	if _, err := recv(t, r.Link, make([]byte, 1)); !errors.Is(err, link.ErrBroken) {
		t.Errorf("the user sees %v", err)
	}
}

// Numbers that no user may write into the ring's control block end the link.
func TestRelaysHostileUser(t *testing.T) {
	for name, word := range map[string]int64{"head": 2048, "tail": 1024 + 128} {
		t.Run(name, func(t *testing.T) {
			r := relay(t, 4096)
			if _, err := unix.Pwrite(r.region, []byte{0, 0, 0, 0, 0, 0, 0, 0x77}, word); err != nil {
				t.Fatal(err)
			}
			_, _ = r.peer.Send([][]byte{make([]byte, 8192)}) // makes the relay look for room
			_, _ = unix.Write(r.Handle(), []byte{0})         // makes the relay look for bytes
			if err := r.end(t); !errors.Is(err, ring.ErrRegion) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Passing bytes on allocates nothing, nor does falling asleep.
func TestRelayAllocatesNothing(t *testing.T) {
	r := relay(t, 4096)
	out, in := [][]byte{make([]byte, 8)}, [][]byte{make([]byte, 8)}
	fds := make([]unix.PollFd, 1)
	pass := func(from, to link.Link) {
		_, _ = from.Send(out)
		for n := 0; n == 0; n, _ = to.Recv(in) {
			if !to.Arm(link.Readable) {
				fds[0] = unix.PollFd{Fd: int32(to.Handle()), Events: unix.POLLIN}
				_, _ = unix.Poll(fds, 1000)
			}
		}
	}
	for name, first := range map[string]func(){"awake": func() {}, "asleep": func() { asleep(t) }} {
		n := testing.AllocsPerRun(100, func() {
			first()
			pass(r.Link, r.peer)
			pass(r.peer, r.Link)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
