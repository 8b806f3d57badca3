package conn_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// pumped is a link whose bytes a pump takes to a connection.
type pumped struct {
	link.Link
	region int // a descriptor of it
	pump   *conn.Pump
	far    *watched
	peer   io.ReadWriteCloser // below the frames
	ended  chan error
}

func pumpRing(t *testing.T) *pumped {
	t.Helper()
	near, region, sock, err := conn.NearRing(4096)
	if err != nil {
		t.Fatal(err)
	}
	p := &pumped{ended: make(chan error, 1)}
	if p.region, err = unix.FcntlInt(uintptr(region), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	if p.Link, err = ring.New(region, sock, 1); err != nil {
		t.Fatal(err)
	}
	p.far, p.peer = watch(t)
	p.pump = conn.NewPump(near, p.far)
	go func() { p.ended <- p.pump.Run() }()
	t.Cleanup(func() {
		p.Link.Close()
		p.peer.Close()
		unix.Close(p.region)
	})
	return p
}

// Invalid numbers that the user writes into the ring's control block end the link, and the
// connection with it.
func TestHostileUser(t *testing.T) {
	for name, c := range map[string]struct{ word, bell int64 }{
		"head": {2048, 2048 + 256}, "tail": {1024 + 128, 1024 + 384},
	} {
		t.Run(name, func(t *testing.T) {
			p := pumpRing(t)
			if _, err := unix.Pwrite(p.region, []byte{0, 0, 0, 0, 0, 0, 0, 0x77}, c.word); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = p.peer.Write(append([]byte{0, 0, 0x20, 0}, make([]byte, 8192)...)) }() // makes the pump look for room
			_, _ = unix.Write(p.Handle(), []byte{0})                                                  // makes the pump look for bytes
			if err := <-p.ended; !errors.Is(err, ring.ErrRegion) {
				t.Errorf("%v", err)
			}
			if p.far.breaks.Load() != 1 {
				t.Error("the connection was not broken")
			}
		})
	}
}

// A user that dies without having ended the stream breaks the connection, after its last
// bytes.
func TestUserDies(t *testing.T) {
	p := pumpRing(t)
	if _, err := p.Send([][]byte{[]byte("last words")}); err != nil {
		t.Fatal(err)
	}
	p.Link.(*ring.Link).Break()
	got := make([]byte, 14)
	if _, err := io.ReadFull(p.peer, got); err != nil || string(got[4:]) != "last words" {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-p.ended; !errors.Is(err, link.ErrBroken) || p.far.breaks.Load() != 1 {
		t.Errorf("%v, broken %d times", err, p.far.breaks.Load())
	}
}

// A user's death is noticed also if its ring is full.
func TestUserDiesWithFullRing(t *testing.T) {
	p := pumpRing(t)
	frame := append([]byte{0, 0, 0x20, 0}, make([]byte, 8192)...) // twice the ring
	wrote := make(chan error, 1)
	go func() {
		_, err := p.peer.Write(frame)
		wrote <- err
	}()
	if n, err := recv(t, p, make([]byte, 1)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	p.Link.(*ring.Link).Break()
	if err := <-p.ended; err == nil {
		t.Error("nobody noticed")
	}
	<-wrote
}

// Close breaks both ends of a pump.
func TestPumpCloses(t *testing.T) {
	p := pumpRing(t)
	p.pump.Close()
	if err := <-p.ended; err == nil || !strings.Contains(err.Error(), "process ends") {
		t.Errorf("%v", err)
	}
	if _, err := recv(t, p, make([]byte, 1)); !errors.Is(err, link.ErrBroken) {
		t.Errorf("the user sees %v", err)
	}
}

// Left reports whether the user has closed the link, also while bytes are under way.
func TestLeft(t *testing.T) {
	p := pumpRing(t)
	if p.pump.Left() {
		t.Error("before")
	}
	if _, err := p.Send([][]byte{[]byte("x")}); err != nil {
		t.Fatal(err)
	}
	p.Link.Close()
	if !p.pump.Left() {
		t.Error("after")
	}
	if b, err := io.ReadAll(p.peer); string(b) != "\x00\x00\x00\x01x\x00\x00\x00\x00" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

// The byte in the tail comes before the end of the socket, and only if CloseWrite has ended
// the stream.
func TestSocketSide(t *testing.T) {
	for name, meant := range map[string]bool{"meant": true, "broken": false} {
		t.Run(name, func(t *testing.T) {
			near, sock, tail, err := conn.NearSocket()
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(sock)
			defer unix.Close(tail)
			if !near.Alive() {
				t.Error("not alive")
			}
			if meant {
				if err := near.CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			near.Break()
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(sock), Events: unix.POLLIN}}, int(limit.Milliseconds()))
			if n, err := unix.Read(sock, make([]byte, 1)); n != 0 || err != nil {
				t.Errorf("the socket: %d, %v", n, err)
			}
			if n, err := unix.Read(tail, make([]byte, 2)); (n == 1) != meant || err != nil {
				t.Errorf("the tail: %d, %v", n, err)
			}
		})
	}
}
