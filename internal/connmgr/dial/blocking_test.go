package dial

import (
	"context"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

func sockets(t *testing.T) (a, b *socket.Link) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := socket.New(fds[0], nil)
	b, err2 := socket.New(fds[1], nil)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

func TestGreetingLeavesThePacketsAlone(t *testing.T) {
	a, b := sockets(t)
	token := dynamic.Token{1}
	d := dynamic.NewDialler(token, Nonce(), dynamic.Hello{Src: 1, Dst: 2})
	g := dynamic.NewAcceptor(dynamic.KeysOfJob(token), Nonce())
	done := make(chan error)
	go func() {
		known := func() bool { _, ok := g.Peer(); return ok }
		if err := Greet(t.Context(), b, g, known); err != nil {
			done <- err
			return
		}
		g.Accept()
		err := Greet(t.Context(), b, g, g.Done)
		_, _ = b.Send([][]byte{[]byte("packets")}) // right behind the verdict
		done <- err
	}()
	if err := errors.Join(Greet(t.Context(), a, d, d.Done), <-done); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 20)
	if n, err := a.Recv([][]byte{buf}); string(buf[:n]) != "packets" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

func TestBlockingEndsWithItsContext(t *testing.T) {
	a, _ := sockets(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	x, err := NewBlocking(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("time is over")
	go cancel(cause)
	if err := x.ReadFull(make([]byte, 1)); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

func TestBlockingWithSomebodyWhoHangsUp(t *testing.T) {
	a, b := sockets(t)
	_, _ = b.Send([][]byte{[]byte("ab")})
	_ = b.Close()
	x, err := NewBlocking(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.ReadFull(make([]byte, 3)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	if err := x.WriteAll(make([]byte, 1<<20)); !errors.Is(err, link.ErrBroken) {
		t.Errorf("%v", err)
	}
}

func TestBlockingNeedsADescriptor(t *testing.T) {
	a, _ := linktest.Pair(10)
	if _, err := NewBlocking(t.Context(), a); err == nil {
		t.Error("it would sleep for ever")
	}
}
