package stripe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// site listens, and makes stripes of what it accepts.
type site struct {
	t      *testing.T
	ln     net.Listener
	groups Groups
	made   chan transports.Conn
	errs   chan error // of connections that were refused
}

func newSite(t *testing.T, most int) *site {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, ln: ln, made: make(chan transports.Conn, 100), errs: make(chan error, 1000)}
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	work.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				switch made, err := s.groups.Accept(ctx, most, c.(*net.TCPConn)); {
				case err != nil:
					s.errs <- err
				case made != nil:
					s.made <- made
				}
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		ln.Close()
		work.Wait()
		if n := len(s.groups.live); n > 0 && !t.Failed() {
			t.Errorf("%d stripes are remembered after their end", n)
		}
	})
	return s
}

func (s *site) open(context.Context, int) (transports.Conn, error) {
	c, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// dial makes a stripe by a plan, of which site accepts the other end.
func (s *site) dial(p Plan) (near, far transports.Conn) {
	s.t.Helper()
	if p.Dial == nil {
		p.Dial = s.open
	}
	near, err := Begin(s.t.Context(), p)
	if err != nil {
		s.t.Fatal(err)
	}
	return near, <-s.made
}

// exchange sends bytes from one to the other, to the end of the stream.
func exchange(t *testing.T, from, to transports.Conn, bytes int) {
	t.Helper()
	sent := make([]byte, bytes)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(sent)
	wrote := make(chan error, 1)
	go func() {
		for left := sent; len(left) > 0; {
			n := min(len(left), 1+int(random.Uint64()%300_000))
			if _, err := from.Write(left[:n]); err != nil {
				wrote <- err
				return
			}
			left = left[n:]
		}
		wrote <- from.CloseWrite()
	}()
	got, err := io.ReadAll(to)
	if err != nil || string(got) != string(sent) {
		t.Errorf("%d of %d bytes came, %v; they are the same: %v", len(got), len(sent), err, string(got) == string(sent))
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// parts returns how many connections the ends have once none is being added.
func parts(near, far transports.Conn) (n, f int) {
	near.(*Conn).pending.Wait()
	far.(*Conn).pending.Wait() // the far one's begin before those of the near one end
	return len(near.(*Conn).Parts()), len(far.(*Conn).Parts())
}

// Who moves much, in either direction, gets all connections; who does not keeps one.
func TestStripesGrow(t *testing.T) {
	for name, c := range map[string]struct {
		back  bool
		bytes int
		want  int
	}{
		"Little": {false, growAfter - 1, 1}, "LittleBack": {true, growAfter - 1, 1},
		"Much": {false, 8 << 20, 5}, "MuchBack": {true, 8 << 20, 5},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := newSite(t, 5).dial(Plan{Most: 5})
			defer near.Close()
			defer far.Close()
			from, to := near, far
			if c.back {
				from, to = far, near
			}
			exchange(t, from, to, c.bytes)
			if n, f := parts(near, far); n != c.want || f != c.want {
				t.Errorf("%d and %d connections, want %d", n, f, c.want)
			}
			exchange(t, to, from, 1000)
		})
	}
}

// A connection that is to stay alone is itself, on both sides.
func TestOneConnectionStays(t *testing.T) {
	one, other := newSite(t, 5).dial(Plan{Most: 1})
	defer one.Close()
	defer other.Close()
	if _, whole := one.(*Conn); whole {
		t.Error("a single connection is a stripe")
	}
	if _, whole := other.(*Conn); whole {
		t.Error("a single connection that was accepted is a stripe")
	}
}

// A stripe goes on with the connections that it gets.
func TestSomeCannotBeHad(t *testing.T) {
	s := newSite(t, 8)
	near, far := s.dial(Plan{Most: 8, Dial: func(ctx context.Context, i int) (transports.Conn, error) {
		switch {
		case i%3 == 1: // nobody is there
			return nil, os.ErrDeadlineExceeded
		case i%3 == 2: // somebody else is there, who ends it
			a, b, err := pair()
			if err == nil {
				b.Close()
			}
			return a, err
		}
		return s.open(ctx, i)
	}})
	defer near.Close()
	defer far.Close()
	exchange(t, near, far, 8<<20)
	exchange(t, far, near, 8<<20)
	if n, f := parts(near, far); n != 3 || f != 3 {
		t.Errorf("%d and %d connections, want those numbered 0, 3 and 6", n, f)
	}
}

// pair makes both ends of a connection.
func pair() (a, b *net.TCPConn, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	x, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	y, err := ln.Accept()
	if err != nil {
		return nil, nil, err
	}
	return x.(*net.TCPConn), y.(*net.TCPConn), nil
}

// Whoever ends a stripe while it grows, and whenever: all that was written before comes, and the
// end.
func TestEndsWhileItGrows(t *testing.T) {
	s := newSite(t, 6)
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		n := growAfter + random.IntN(200_000)
		near, far := s.dial(Plan{Most: 6})
		from, to := near, far
		if random.IntN(2) == 0 {
			from, to = far, near
		}
		wrote := make(chan error, 1)
		go func() {
			_, err := from.Write(make([]byte, n))
			wrote <- errors.Join(err, from.Close())
		}()
		got, err := io.ReadAll(to)
		if err != nil || len(got) != n {
			t.Fatalf("%d of %d bytes came, %v", len(got), n, err)
		}
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		to.Close()
	}
}

// A stripe that breaks while it grows leaves nothing behind.
func TestBreaksWhileItGrows(t *testing.T) {
	s := newSite(t, 6)
	for i := range 100 {
		near, far := s.dial(Plan{Most: 6})
		ends := []func(){near.(*Conn).Break, far.(*Conn).Break, func() { near.(*Conn).first.Close() }}
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			for {
				if _, err := near.Write(make([]byte, 50_000)); err != nil {
					return
				}
			}
		}()
		_, _ = io.CopyN(io.Discard, far, growAfter+int64(i)*5000)
		ends[i%3]()
		_, _ = io.Copy(io.Discard, far)
		<-wrote
		near.Close()
		far.Close()
	}
}

// A peer that takes a connection and does not answer is not waited for once the stripe is broken,
// and nothing is sent to it but the hello.
func TestNoAnswer(t *testing.T) {
	s := newSite(t, 2)
	silent := make(chan net.Conn, 1)
	near, far := s.dial(Plan{Most: 2, Dial: func(ctx context.Context, i int) (transports.Conn, error) {
		if i == 0 {
			return s.open(ctx, i)
		}
		a, b, err := pair()
		silent <- b
		return a, err
	}})
	defer far.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.CopyN(io.Discard, far, 1<<20)
	}()
	if _, err := near.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	<-read
	b := <-silent
	var h [helloSize]byte
	if _, err := io.ReadFull(b, h[:]); err != nil {
		t.Fatal(err)
	}
	near.(*Conn).Break()
	near.Close()
	if n, err := b.Read(h[:]); n != 0 || err == nil {
		t.Errorf("it got %d bytes more, %v", n, err)
	}
	b.Close()
}

// Who says what somebody else has said, or something else about the stripe, is refused alone.
func TestStrangersAtGroups(t *testing.T) {
	s := newSite(t, 4)
	say := func(h hello) *net.TCPConn {
		c, err := s.open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := h.say(c); err != nil {
			t.Fatal(err)
		}
		return c.(*net.TCPConn)
	}
	mine := hellos(3, 1)
	first := say(mine[0])
	if err := await(first); err != nil {
		t.Fatal(err)
	}
	far := (<-s.made).(*Conn)
	defer far.Close()
	second := say(mine[1])
	if err := await(second); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		h    hello
		want error
	}{
		"the first again":  {mine[0], ErrProtocol},
		"the second again": {mine[1], ErrProtocol},
		"another count":    {hello{2, 4, mine[0].id}, ErrProtocol},
		"too many":         {hello{0, 5, [16]byte{2}}, ErrProtocol},
		"nobody's":         {hello{1, 3, [16]byte{3}}, ErrEnded},
	} {
		if err := await(say(c.h)); err == nil {
			t.Errorf("%s: it was taken", name)
		}
		if err := <-s.errs; !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if n := len(far.Parts()); n != 2 {
		t.Errorf("%d connections", n)
	}
	if _, err := second.Write(block(0, "hello")); err != nil {
		t.Fatal(err)
	}
	var got [5]byte
	if _, err := io.ReadFull(far, got[:]); err != nil || string(got[:]) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	far.Break()
	if err := await(say(mine[2])); err == nil {
		t.Error("a connection is added to what has ended")
	}
	if err := <-s.errs; !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}

// Two stripes are told apart, and a peer that is none of ours is an error of Begin.
func TestBegin(t *testing.T) {
	ids := make(map[string]bool)
	for range 2 {
		a, b, err := pair()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		go func() { _, _ = io.Copy(b, strings.NewReader("220 mail.example")) }()
		_, err = Begin(t.Context(), Plan{Most: 2, Dial: func(context.Context, int) (transports.Conn, error) { return a, nil }})
		if !errors.Is(err, ErrProtocol) {
			t.Errorf("Begin gives %v", err)
		}
		h, err := hear(b)
		if err != nil {
			t.Fatal(err)
		}
		ids[string(bytes.Clone(h.id[:]))] = true
	}
	if len(ids) != 2 {
		t.Error("two stripes have one number")
	}
	a, b, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if _, err = Begin(t.Context(), Plan{Most: 2, Dial: func(context.Context, int) (transports.Conn, error) { return a, nil }}); !errors.Is(err, ErrGivenUp) {
		t.Errorf("Begin gives %v", err)
	}
}

// Dial has them all before it returns, or fails with what one of them failed with.
func TestDial(t *testing.T) {
	s := newSite(t, 6)
	near, err := Dial(t.Context(), 6, s.open)
	if err != nil {
		t.Fatal(err)
	}
	far := <-s.made
	if n, f := parts(near, far); n != 6 || f != 6 {
		t.Errorf("%d and %d connections", n, f)
	}
	exchange(t, near, far, 1<<20)
	near.Close()
	far.Close()
	_, err = Dial(t.Context(), 6, func(ctx context.Context, i int) (transports.Conn, error) {
		if i == 4 {
			return nil, os.ErrPermission
		}
		return s.open(ctx, i)
	})
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("Dial gives %v", err)
	}
	(<-s.made).Close()
}

// A stripe whose peer has ended it with blocks missing fails when the connection does not come that
// could have brought them.
func TestConnectionThatWasExpected(t *testing.T) {
	near, far := conns(t, 1)
	c := New(far)
	defer c.Close()
	c.most, c.claimed = 2, 1
	for _, b := range [][]byte{block(0, "x"), block(2, "")} { // without block 1
		if _, err := near[0].Write(b); err != nil {
			t.Fatal(err)
		}
	}
	gone, other, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c.in.expect() // so that the end comes first
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(c)
		read <- err
	}()
	for ended := false; !ended; {
		c.in.mu.Lock()
		ended = c.in.ended
		c.in.mu.Unlock()
	}
	gone.Close()
	if err := c.join(t.Context(), hello{index: 1, count: 2}, gone); err == nil {
		t.Error("a closed connection is added")
	}
	c.giveUp()
	if err := <-read; !errors.Is(err, ErrProtocol) {
		t.Errorf("Read gives %v", err)
	}
}
