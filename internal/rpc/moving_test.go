package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// pair is a TCP connection.
func pair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{near, far} { // little is under way, so that moves are fast
		_ = c.(*net.TCPConn).SetReadBuffer(16 << 10)
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
	}
	return near, far
}

// numbers writes numbers until stop is closed, in pieces of several sizes, and then their count and
// the end.
func numbers(t *testing.T, to io.Writer, stop <-chan struct{}) (wrote uint32) {
	var b []byte
	for i := 0; ; i++ {
		b = b[:0]
		for range i%500 + 1 {
			b = binary.BigEndian.AppendUint32(b, wrote)
			wrote++
		}
		select {
		case <-stop:
			b = binary.BigEndian.AppendUint32(b, 0xffffffff)
			if _, err := to.Write(b); err != nil {
				t.Error(err)
			}
			return wrote
		default:
		}
		if n, err := to.Write(b); err != nil || n != len(b) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
			return wrote
		}
	}
}

// inOrder reads them.
func inOrder(t *testing.T, from io.Reader) (read uint32) {
	in := bufio.NewReader(from)
	var b [4]byte
	for {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			t.Errorf("after %d numbers: %v", read, err)
			return read
		}
		switch n := binary.BigEndian.Uint32(b[:]); n {
		case 0xffffffff:
			return read
		case read:
			read++
		default:
			t.Errorf("%d instead of %d", n, read)
			return read
		}
	}
}

// TestMoving: what two ends write to each other arrives in its order while their connection is
// carried on by others, again and again, and those before are closed.
func TestMoving(t *testing.T) {
	a, b := pair(t)
	near, far := NewReplaceableConn(a, nil), NewReplaceableConn(b, nil)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var wrote, read [2]uint32
	for i, ends := range [][2]*ReplaceableConn{{near, far}, {far, near}} {
		all.Go(func() { wrote[i] = numbers(t, ends[0], stop) })
		all.Go(func() { read[i] = inOrder(t, ends[1]) })
	}
	for range 5 {
		before := near.Current()
		x, y := pair(t)
		var both sync.WaitGroup
		for _, end := range []struct {
			m  *ReplaceableConn
			to net.Conn
		}{{near, x}, {far, y}} {
			if err := end.m.Reserve(); err != nil {
				t.Fatal(err)
			}
			if err := end.m.Reserve(); !errors.Is(err, ErrReplacing) {
				t.Fatal("two moves at a time:", err)
			}
			both.Go(func() {
				if err := end.m.Move(end.to); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if _, err := before.Write([]byte{0}); !errors.Is(err, net.ErrClosed) || near.Current() != x || far.Current() != y {
			t.Fatal("the one before is open:", err)
		}
	}
	close(stop)
	all.Wait()
	if read != wrote || read[0] == 0 || read[1] == 0 {
		t.Errorf("read %v of %v", read, wrote)
	}
	for _, m := range []*ReplaceableConn{near, far} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Reserve(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestMovingAsk: one end asks the other, whose bytes around that arrive.
func TestMovingAsk(t *testing.T) {
	a, b := pair(t)
	asked := make(chan struct{}, 1)
	near, far := NewReplaceableConn(a, func() { asked <- struct{}{} }), NewReplaceableConn(b, nil)
	defer near.Close()
	defer far.Close()
	for _, err := range []error{write(far, "x"), far.Ask(), write(far, "y")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var got [2]byte
	if _, err := io.ReadFull(near, got[:]); err != nil || string(got[:]) != "xy" {
		t.Errorf("%q, %v", got, err)
	}
	<-asked
}

func write(m *ReplaceableConn, s string) error { _, err := m.Write([]byte(s)); return err }

// TestMovingFrames: a frame that comes byte by byte is read, and one that is too long is an error.
func TestMovingFrames(t *testing.T) {
	a, b := pair(t)
	near := NewReplaceableConn(a, nil)
	defer near.Close()
	go func() {
		for _, x := range append([]byte{0, 0, 0, 3}, "abc\x7f\xff\xff\xff"...) {
			_, _ = b.Write([]byte{x})
		}
		_ = b.Close()
	}()
	got, err := io.ReadAll(near)
	if string(got) != "abc" || !errors.Is(err, errFrame) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestMovingDeadlines: deadlines hold on the connection that carries on.
func TestMovingDeadlines(t *testing.T) {
	a, b := pair(t)
	near, far := NewReplaceableConn(a, nil), NewReplaceableConn(b, nil)
	defer near.Close()
	defer far.Close()
	x, y := pair(t)
	var read, moved sync.WaitGroup
	for _, end := range []struct {
		m  *ReplaceableConn
		to net.Conn
	}{{near, x}, {far, y}} {
		if err := end.m.Reserve(); err != nil {
			t.Fatal(err)
		}
		read.Go(func() {
			var b [1]byte
			if _, err := io.ReadFull(end.m, b[:]); err != nil || string(b[:]) != "z" {
				t.Errorf("%q, %v", b, err)
			}
		})
		moved.Go(func() {
			if err := end.m.Move(end.to); err != nil {
				t.Error(err)
			}
		})
	}
	moved.Wait()
	for _, err := range []error{write(near, "z"), write(far, "z")} {
		if err != nil {
			t.Error(err)
		}
	}
	read.Wait()
	if err := near.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("Read: %v", err)
	}
	if _, err := near.Write(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("Write: %v", err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
