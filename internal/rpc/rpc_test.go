package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/internal/rpc/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with what the server knows of who asks.
type echo struct {
	proto.UnimplementedControlServer
}

func (echo) Ask(ctx context.Context, _ *proto.Question) (*proto.Report, error) {
	about, _ := PeerOf(ctx).(string)
	return &proto.Report{Json: []byte(about)}, nil
}

// serving starts a server; connect makes a connection to it.
func serving(t *testing.T, l Limits) (connect func() net.Conn, stop func()) {
	t.Helper()
	s, ln := NewServer(l), NewListener()
	proto.RegisterControlServer(s, echo{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	connect = func() net.Conn {
		near, far := net.Pipe()
		go ln.Put(NewConn(far, "a peer"))
		return near
	}
	return connect, func() { s.Stop(); <-served }
}

var wide = Limits{Request: 1 << 10, Greet: 7 * time.Second, Silence: time.Minute, Idle: 20 * time.Second}

// TestOneConnection: a client knows its address as the server sees it, notices the end, and
// never makes another connection.
func TestOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect, stop := serving(t, wide)
		c := NewConn(connect(), nil)
		client, err := Client(c, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ask := proto.NewControlClient(client)
		if r, err := ask.Ask(t.Context(), &proto.Question{}); err != nil || string(r.Json) != "a peer" {
			t.Fatalf("%v %v", r, err)
		}
		stop()
		<-c.Done()
		for range 2 {
			if _, err := ask.Ask(t.Context(), &proto.Question{}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), errLost.Error()) {
				t.Errorf("after the end: %v", err)
			}
		}
	})
}

// TestLimits: clients that say nothing, ask nothing or ask too much.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect, stop := serving(t, wide)
		defer stop()
		mute, begin := connect(), time.Now()
		if _, err := io.Copy(io.Discard, mute); time.Since(begin) != wide.Greet {
			t.Errorf("who says nothing goes after %v: %v", time.Since(begin), err)
		}
		c := NewConn(connect(), nil)
		client, err := Client(c, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ask := proto.NewControlClient(client)
		if _, err := ask.Ask(t.Context(), &proto.Question{Op: strings.Repeat("x", wide.Request)}); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("too much: %v", err)
		}
		begin = time.Now()
		<-c.Done()
		if took := time.Since(begin); took < wide.Idle || took > 2*wide.Idle {
			t.Errorf("who asks nothing goes after %v", took)
		}
	})
}

// TestDeadPeers: a server that answers no pings is lost, even if TCP considers the
// connection alive.
func TestDeadPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect, stop := serving(t, Limits{Request: 1 << 10, Greet: time.Minute, Silence: time.Hour})
		defer stop()
		deaf := &dropping{Conn: connect(), from: make(chan struct{})}
		c := NewConn(deaf, nil)
		client, err := Client(c, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := proto.NewControlClient(client).Ask(t.Context(), &proto.Question{}); err != nil {
			t.Fatal(err)
		}
		close(deaf.from)
		begin := time.Now()
		<-c.Done()
		if took := time.Since(begin); took > 2*(pingEvery+pingLimit) {
			t.Errorf("lost after %v", took)
		}
	})
}

// dropping is a connection that drops all bytes from some time on.
type dropping struct {
	net.Conn
	from chan struct{}
}

func (d *dropping) Write(b []byte) (int, error) {
	select {
	case <-d.from:
		return len(b), nil
	default:
		return d.Conn.Write(b)
	}
}

func TestListenerEnds(t *testing.T) {
	ln := NewListener()
	_ = ln.Close()
	_ = ln.Close()
	near, far := net.Pipe()
	c := NewConn(far, nil)
	if ln.Put(c); !errors.Is(func() error { _, err := ln.Accept(); return err }(), net.ErrClosed) {
		t.Error("it accepts after its end")
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection that nobody takes stays: %v", err)
	}
}

// failing is a connection whose writes fail once it is broken, and whose reads do not.
type failing struct {
	net.Conn
	broken atomic.Bool
}

func (f *failing) Write(b []byte) (int, error) {
	if f.broken.Load() {
		return 0, syscall.ENOMEM
	}
	return f.Conn.Write(b)
}

// TestFailedWrite: a request that cannot be written fails at once, and the connection ends.
func TestFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect, stop := serving(t, wide)
		f := &failing{Conn: connect()}
		c := NewConn(f, nil)
		client, err := Client(c, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ask := proto.NewControlClient(client)
		if _, err := ask.Ask(t.Context(), &proto.Question{}); err != nil {
			t.Fatal(err)
		}
		f.broken.Store(true)
		begun := time.Now()
		if _, err := ask.Ask(t.Context(), &proto.Question{}); status.Code(err) != codes.Unavailable || time.Since(begun) > 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		select {
		case <-c.Done():
		default:
			t.Error("the connection has not ended")
		}
		stop()
	})
}
