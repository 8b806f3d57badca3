package relay

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/wan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// free is an address of this process with a port that the kernel chooses.
func free() string { return net.JoinHostPort(loopback.Address().String(), "0") }

// echo answers each connection with what comes, after all of it has come, until the test is over.
func echo(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", free())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			_, _ = c.Write(b)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// exchange sends bytes and returns what comes back, and how long that took.
func exchange(t *testing.T, address string, b []byte) ([]byte, time.Duration) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun := time.Now()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return got, time.Since(begun)
}

func TestTCP(t *testing.T) {
	shape := wan.Shape{Rate: 80e6, Delay: 10 * time.Millisecond, Jitter: time.Millisecond, Queue: 1000}
	r, err := TCP(free(), echo(t), shape, shape, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, took := exchange(t, r.Address(), []byte("hello")); string(got) != "hello" || took < 20*time.Millisecond {
		t.Errorf("%q came back after %v, over 10 ms in each direction", got, took)
	}
	// A megabyte takes a tenth of a second in each direction.
	b := make([]byte, 1e6)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	got, took := exchange(t, r.Address(), b)
	if !bytes.Equal(got, b) || took < 220*time.Millisecond {
		t.Errorf("%d bytes came back after %v, where 220 ms are the least; the same: %v", len(got), took, bytes.Equal(got, b))
	}
	there, back := r.Counts()
	if there.Bytes != 1000005 || back.Bytes != 1000005 || there.Dropped+back.Dropped != 0 {
		t.Errorf("there %+v, back %+v", there, back)
	}
}

func TestTCPWithoutTarget(t *testing.T) {
	r, err := TCP(free(), loopback.Unused(t), wan.Shape{}, wan.Shape{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection to nobody says something")
	}
}

// Close ends connections that are in the middle of something.
func TestCloseWhileBusy(t *testing.T) {
	slow := wan.Shape{Rate: 1e5, Delay: time.Minute}
	r, err := TCP(free(), echo(t), slow, slow, 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, 100000)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n, _ := io.Copy(io.Discard, c); n != 0 { // it ends, by an error or without
		t.Errorf("%d bytes came from nobody", n)
	}
}

func TestRefusals(t *testing.T) {
	for _, lossy := range []wan.Shape{{Loss: 0.1}, {Duplicate: 0.1}, {Reorder: 0.1}, {OutageInterval: time.Second, OutageLength: time.Second}} {
		for _, shapes := range [][2]wan.Shape{{lossy, {}}, {{}, lossy}} {
			if _, err := TCP(free(), "127.0.0.1:1", shapes[0], shapes[1], 1); !errors.Is(err, errLossy) {
				t.Errorf("%+v: %v", shapes, err)
			}
		}
	}
	if _, err := UDP(free(), "127.0.0.1:1", wan.Shape{Loss: 2}, wan.Shape{}, 1); err == nil || !strings.Contains(err.Error(), "loss is 2") {
		t.Errorf("a loss of 2: %v", err)
	}
	if _, err := UDP(free(), "nowhere", wan.Shape{}, wan.Shape{}, 1); err == nil {
		t.Error("an address that is none is accepted")
	}
}

// A server that answers each datagram, over lines that lose and double: what arrives is what they
// count.
func TestUDP(t *testing.T) {
	const n = 200
	server, err := net.ListenPacket("udp", free())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 100)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(b[:n], from)
		}
	}()
	defer func() { server.Close(); <-ended }()
	r, err := UDP(free(), server.LocalAddr().String(), wan.Shape{Delay: 5 * time.Millisecond, Loss: 0.1, Duplicate: 0.1}, wan.Shape{Delay: 5 * time.Millisecond}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := net.Dial("udp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until := time.Now().Add(2 * time.Minute)
	await := func(what string, done func(there, back wan.Counts) bool) {
		t.Helper()
		for there, back := r.Counts(); !done(there, back); there, back = r.Counts() {
			if time.Now().After(until) {
				t.Fatalf("%s: %+v, %+v", what, there, back)
			}
			runtime.Gosched()
		}
	}
	seen := make([]int, n)
	begun := time.Now()
	for i := range n {
		if _, err := c.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		// One by one, as the kernel drops what it has no room for.
		await("a datagram is not taken", func(there, _ wan.Counts) bool { return there.Offered == uint64(i)+1 })
	}
	there, _ := r.Counts()
	passed := int(there.Offered - there.Lost + there.Duplicated)
	if there.Lost == 0 || there.Duplicated == 0 || there.Bytes != n*29 {
		t.Errorf("nothing was lost or doubled: %+v", there)
	}
	for i := range passed {
		b := make([]byte, 100)
		_ = c.SetReadDeadline(until)
		k, err := c.Read(b)
		if err != nil || k != 1 {
			t.Fatalf("answer %d of %d: %d bytes, %v", i, passed, k, err)
		}
		if i == 0 && time.Since(begun) < 10*time.Millisecond {
			t.Errorf("the first answer came after %v, over 5 ms in each direction", time.Since(begun))
		}
		seen[b[0]]++
	}
	once := len(slices.DeleteFunc(slices.Clone(seen), func(k int) bool { return k == 0 }))
	if once != n-int(there.Lost) || slices.Max(seen) != 2 {
		t.Errorf("%d datagrams arrived, one of them %d times, of %+v", once, slices.Max(seen), there)
	}
}
