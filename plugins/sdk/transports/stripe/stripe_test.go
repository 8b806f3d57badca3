package stripe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conns are both ends of several connections.
func conns(t *testing.T, count int) (near, far []transports.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for range count {
		a, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		near, far = append(near, a.(*net.TCPConn)), append(far, b.(*net.TCPConn))
	}
	t.Cleanup(func() {
		for i := range near {
			near[i].Close()
			far[i].Close()
		}
	})
	return near, far
}

// slow is a connection that passes few bytes at a time.
type slow struct {
	transports.Conn
	most int
}

func (s slow) Read(p []byte) (int, error) { return s.Conn.Read(p[:min(s.most, len(p))]) }

// What is written in pieces of any size over connections of any speed is read in order, with its
// end.
func TestOrder(t *testing.T) {
	near, far := conns(t, 5)
	far[1], far[3] = slow{far[1], 100}, slow{far[3], 1000}
	a, b := New(near), New(far)
	defer a.Close()
	defer b.Close()
	random := rand.New(rand.NewPCG(1, 2))
	sent := make([]byte, 9<<20)
	for i := range sent {
		sent[i] = byte(random.Uint32())
	}
	wrote := make(chan error, 1)
	go func() {
		for left := sent; len(left) > 0; {
			n := min(len(left), 1+random.IntN(200_000))
			if _, err := a.Write(left[:n]); err != nil {
				wrote <- err
				return
			}
			left = left[n:]
		}
		wrote <- a.CloseWrite()
	}()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d of %d bytes came, %v; they are the same: %v", len(got), len(sent), err, bytes.Equal(got, sent))
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	// The other direction goes on.
	if _, err := b.Write([]byte("bye")); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if got, err := io.ReadAll(a); err != nil || string(got) != "bye" {
		t.Errorf("after the half-close came %q, %v", got, err)
	}
}

// All connections are used, in proportion to what they take.
func TestAllConnectionsAreUsed(t *testing.T) {
	near, far := conns(t, 4)
	a := New(near)
	defer a.Close()
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write(make([]byte, 32<<20))
		wrote <- err
	}()
	b := New(far[:4:4])
	if _, err := io.CopyN(io.Discard, b, 32<<20); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	b.Close()
	for i, q := range a.out.queues {
		if len(q.blocks) != 0 {
			t.Errorf("connection %d has %d blocks left", i, len(q.blocks))
		}
	}
}

func block(number uint64, data string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = binary.BigEndian.AppendUint64(b, number)
	return append(b, data...)
}

// A peer that breaks the rules breaks the connection, whatever it sends, and is not waited for.
func TestBadPeers(t *testing.T) {
	large := binary.BigEndian.AppendUint32(nil, blockSize+1)
	for name, c := range map[string]struct {
		first, second []byte // on two connections
		want          error
	}{
		"LargeBlock":   {append(large, make([]byte, 8)...), nil, ErrProtocol},
		"Backwards":    {append(block(3, "x"), block(2, "y")...), nil, ErrProtocol},
		"Twice":        {block(1, "x"), block(1, "y"), ErrProtocol},
		"Missing":      {append(block(0, "x"), block(3, "")...), append(block(2, "z"), block(3, "")...), ErrProtocol},
		"TwoEnds":      {append(block(0, "x"), block(1, "")...), block(2, ""), ErrProtocol},
		"AfterItsEnd":  {append(block(5, "x"), block(1, "")...), nil, ErrProtocol},
		"AfterTheEnd":  {block(1, ""), append(block(0, "x"), block(7, "y")...), ErrProtocol},
		"NoEnd":        {append(block(0, "x"), block(1, "")...), nil, io.ErrUnexpectedEOF},
		"CutInHead":    {block(0, "x")[:7], block(0, ""), io.ErrUnexpectedEOF},
		"CutInContent": {block(0, "xyz")[:13], block(1, ""), io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := conns(t, 2)
			c2 := New(far)
			defer c2.Close()
			for i, data := range [][]byte{c.first, c.second} {
				if _, err := near[i].Write(data); err != nil && i == 0 { // the second one may be broken already
					t.Fatal(err)
				}
				if errors.Is(c.want, io.ErrUnexpectedEOF) {
					near[i].CloseWrite()
				}
			}
			_, err := io.ReadAll(c2)
			if !errors.Is(err, c.want) {
				t.Errorf("Read fails with %v, want %v", err, c.want)
			}
			if _, again := c2.Read(make([]byte, 1)); !errors.Is(again, c.want) {
				t.Errorf("and then with %v", again)
			}
			if _, err := c2.Write(make([]byte, 1)); err == nil {
				t.Error("Write goes on")
			}
		})
	}
}

// Break, or the loss of one connection, is a failure on both sides and no end.
func TestBroken(t *testing.T) {
	for name, end := range map[string]func(a *Conn){
		"Break": (*Conn).Break,
		"One":   func(a *Conn) { a.conns[1].Close() },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := conns(t, 3)
			a, b := New(near), New(far)
			defer a.Close()
			defer b.Close()
			if _, err := a.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			end(a)
			if _, err := io.ReadAll(b); err == nil {
				t.Error("the peer sees an end")
			}
			if _, err := io.Copy(a, strings.NewReader(strings.Repeat("x", 64<<20))); err == nil {
				t.Error("Write goes on")
			}
			if _, err := a.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("Read gives %v", err)
			}
		})
	}
}

// Deadlines end what waits, also if they are set while it does, and can be taken back.
func TestDeadlines(t *testing.T) {
	near, far := conns(t, 2)
	a := New(near) // whose peer reads nothing
	defer a.Break()
	_ = far
	past := time.Unix(1, 0)
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write(make([]byte, 256<<20))
		wrote <- err
	}()
	if err := a.SetWriteDeadline(past); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write gives %v", err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := a.Read(make([]byte, 1))
		read <- err
	}()
	if err := a.SetReadDeadline(past); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read gives %v", err)
	}
	if err := a.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := far[1].Write(block(0, "x")); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("without a deadline Read gives %d, %v", n, err)
	}
}

// What Write has taken arrives although Close comes at once, and although a deadline has passed
// meanwhile.
func TestCloseDiscardsNothing(t *testing.T) {
	near, far := conns(t, 3)
	a, b := New(near), New(far)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	got := make(chan []byte, 1)
	failed := make(chan error, 1)
	wrote := make(chan struct{})
	go func() {
		<-wrote
		all, err := io.ReadAll(b)
		failed <- err
		got <- all
	}()
	n, err := a.Write(sent[:6*blockSize]) // as much as there is memory for
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	close(wrote)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Errorf("the peer sees %v", err)
	}
	if all := <-got; !bytes.Equal(all, sent[:n]) {
		t.Errorf("%d of %d bytes came", len(all), n)
	}
	b.Close()
}

// A Write that Close cuts short says so, and the peer does not take what came for all.
func TestCloseCutsWriteShort(t *testing.T) {
	near, far := conns(t, 2)
	a, b := New(near), New(far)
	defer b.Close()
	type result struct {
		n   int
		err error
	}
	wrote := make(chan result, 1)
	const much = 128 << 20
	go func() {
		n, err := a.Write(make([]byte, much))
		wrote <- result{n, err}
	}()
	if _, err := io.ReadFull(b, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if r := <-wrote; r.err == nil || r.n == much {
		t.Errorf("Write gives %d, %v", r.n, r.err)
	}
	if _, err := io.Copy(io.Discard, b); err == nil {
		t.Error("the peer sees an end")
	}
}

// All methods may be called at any time beside each other.
func TestAllAtOnce(t *testing.T) {
	for range 200 {
		near, far := conns(t, 2)
		a, b := New(near), New(far)
		var wg sync.WaitGroup
		for _, f := range []func(){
			func() { _, _ = a.Write(make([]byte, 300_000)) }, func() { _ = a.CloseWrite() }, func() { _, _ = io.Copy(io.Discard, b) },
			func() { _ = a.SetDeadline(time.Now()) }, func() { _ = a.SetDeadline(time.Time{}) }, func() { _ = a.Close() }, func() { b.Break() },
		} {
			wg.Go(f)
		}
		wg.Wait()
		b.Close()
	}
}

// A deadline that was taken back does nothing, whenever its timer fires.
func TestDeadlineTakenBack(t *testing.T) {
	near, _ := conns(t, 2)
	a := New(near)
	defer a.Break()
	for range 2000 {
		_ = a.SetWriteDeadline(time.Now())
		_ = a.SetWriteDeadline(time.Time{})
		for range 20 { // a timer that has fired may not have run yet
			select {
			case <-a.out.tooLate():
				t.Fatal("it counts")
			default:
			}
			runtime.Gosched()
		}
	}
}
