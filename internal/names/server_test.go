package names

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/rpc/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var theKey = startup.Auth{HasKey: true, Key: 42}

// serving starts a server on a loopback port.
func serving(t *testing.T, cfg ServerConfig) (s *Server, address string) {
	t.Helper()
	if cfg.Auth.Mask() == 0 {
		cfg.Auth = theKey
	}
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	return s, ln.Addr().String()
}

func clientOf(t *testing.T, set Settings) *Client {
	t.Helper()
	if set.Auth.Mask() == 0 {
		set.Auth = theKey
	}
	s := NewClient(set)
	t.Cleanup(s.Close)
	return s
}

func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func looksUp(t *testing.T, s *Client, scope, service, want string) {
	t.Helper()
	if got, err := s.Lookup(t.Context(), scope, service); err != nil || got != want {
		t.Errorf("%s of scope %q is %q: %v; want %q", service, scope, got, err, want)
	}
}

// TestTwoJobsShareNames follows a name from its publication to its end.
func TestTwoJobsShareNames(t *testing.T) {
	srv, at := serving(t, ServerConfig{})
	a, b := clientOf(t, Settings{Server: at, Owner: names.Owner{1}}), clientOf(t, Settings{Server: at, Owner: names.Owner{2}})
	other := clientOf(t, Settings{Server: at, Owner: names.Owner{1}}) // another site of a's job
	ctx := t.Context()
	for range 100 {
		_, err := b.Lookup(ctx, "", "heat")
		wants(t, "before", err, names.ErrNotFound)
	}
	if err := a.Publish(ctx, "", "heat", "port"); err != nil {
		t.Fatal(err)
	}
	looksUp(t, b, "", "heat", "port")
	_, err := b.Lookup(ctx, "chem", "heat")
	wants(t, "in another scope", err, names.ErrNotFound)
	wants(t, "again", b.Publish(ctx, "", "heat", "x"), names.ErrPublished)
	wants(t, "not one's own", b.Unpublish(ctx, "", "heat"), names.ErrUnknown)
	wants(t, "no service", b.Publish(ctx, "", "", "x"), names.ErrName)
	if err := other.Unpublish(ctx, "", "heat"); err != nil {
		t.Error(err)
	}
	wants(t, "after", a.Unpublish(ctx, "", "heat"), names.ErrUnknown)
	if srv.Len() != 0 {
		t.Errorf("%d names are left", srv.Len())
	}
}

// A server that is made and never listens has nothing to close: TestMain looks for
// goroutines.
func TestUnusedServerHasNoGoroutines(t *testing.T) {
	if _, err := NewServer(ServerConfig{Auth: theKey}); err != nil {
		t.Fatal(err)
	}
}

func TestNamesEndWithTheirJob(t *testing.T) {
	_, at := serving(t, ServerConfig{})
	a, b := clientOf(t, Settings{Server: at}), clientOf(t, Settings{Server: at})
	if err := a.Publish(t.Context(), "", "heat", "port"); err != nil {
		t.Fatal(err)
	}
	looksUp(t, b, "", "heat", "port")
	a.Close()
	for { // the server hears of the end by itself
		if _, err := b.Lookup(t.Context(), "", "heat"); errors.Is(err, names.ErrNotFound) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	wants(t, "closed", a.Publish(t.Context(), "", "heat", "port"), ErrUnreachable)
}

// TestNobodyWithoutTheKey tries the combinations of keys of both sides.
func TestNobodyWithoutTheKey(t *testing.T) {
	none, wrong := startup.Auth{None: true}, startup.Auth{HasKey: true, Key: 43}
	both := startup.Auth{None: true, HasKey: true, Key: 42}
	for _, c := range []struct {
		server, client startup.Auth
		says           string // empty: they get on
	}{
		{theKey, theKey, ""}, {none, none, ""}, {both, theKey, ""}, {theKey, both, ""}, {both, none, ""},
		{theKey, wrong, "wrong key"}, {theKey, none, "wants a key"}, {both, wrong, "wrong key"},
		{none, theKey, "no key"}, {wrong, both, "wrong key"},
	} {
		srv, at := serving(t, ServerConfig{Auth: c.server})
		s := clientOf(t, Settings{Server: at, Auth: c.client})
		err := s.Publish(t.Context(), "", "heat", "port")
		if c.says == "" {
			if err != nil || srv.Len() != 1 {
				t.Errorf("server %v, client %v: %v", c.server, c.client, err)
			}
			continue
		}
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("server %v, client %v: %v, want %q", c.server, c.client, err, c.says)
		}
		if _, err := s.Lookup(t.Context(), "", "heat"); !errors.Is(err, ErrDenied) {
			t.Errorf("server %v, client %v: %v", c.server, c.client, err)
		}
		if srv.Len() != 0 {
			t.Errorf("server %v, client %v: %d names", c.server, c.client, srv.Len())
		}
	}
}

func TestNoServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := clientOf(t, Settings{Server: ln.Addr().String()})
	ln.Close()
	err = s.Publish(t.Context(), "", "heat", "port")
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("%v, which should name %v", err, ln.Addr())
	}
}

// TestSilentServer: a request ends when its time is over, also one that waits for
// another.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := NewClient(Settings{Auth: theKey, Dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return near, nil
		}})
		defer s.Close()
		errs := make(chan error)
		for range 2 {
			go func() {
				ctx, cancel := context.WithTimeoutCause(context.Background(), 3*time.Second, errors.New("3 s are over"))
				defer cancel()
				_, err := s.Lookup(ctx, "", "heat")
				errs <- err
			}()
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "3 s are over") {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// piped is a server whose clients connect by pipes, so that the test controls time.
func piped(t *testing.T, cfg ServerConfig) (*Server, func() net.Conn) {
	t.Helper()
	cfg.Auth = theKey
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, func() net.Conn {
		near, far := net.Pipe()
		go s.Handle(far)
		return near
	}
}

func dialPipe(connect func() net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return connect(), nil }
}

// gone checks that the server closes a connection after this time.
func gone(t *testing.T, nc net.Conn, after time.Duration) {
	t.Helper()
	begin := time.Now()
	_, err := io.Copy(io.Discard, nc)
	if took := time.Since(begin); took != after {
		t.Errorf("closed after %v (%v), want %v", took, err, after)
	}
	nc.Close()
}

// deaf is a connection whose client stops reading, and so does not answer pings.
type deaf struct {
	net.Conn
	ears atomic.Bool
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	for err == nil && d.ears.Load() {
		n, err = d.Conn.Read(b)
	}
	return n, err
}

// Write drops everything once the client has stopped.
func (d *deaf) Write(b []byte) (int, error) {
	if d.ears.Load() {
		return len(b), nil
	}
	return d.Conn.Write(b)
}

// Close leaves the server with a connection on which nothing comes.
func (d *deaf) Close() error {
	if d.ears.Load() {
		return nil
	}
	return d.Conn.Close()
}

// TestSlowClients: clients that do not answer lose their connections.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect := piped(t, ServerConfig{Greet: 7 * time.Second, Idle: 20 * time.Second})
		defer s.Close()
		gone(t, connect(), 7*time.Second) // says nothing

		ctx := context.Background()
		c, err := kind.Connect(ctx, connect(), keysOf(theKey)) // nothing after the key
		if err != nil {
			t.Fatal(err)
		}
		gone(t, c, 7*time.Second)

		d := &deaf{Conn: connect()} // answers nothing after its first request
		n := NewClient(Settings{Auth: theKey, Dial: func(context.Context, string, string) (net.Conn, error) {
			if d.ears.Load() {
				return nil, errors.New("once")
			}
			return d, nil
		}})
		defer n.Close()
		if err := n.Publish(ctx, "", "s", "p"); err != nil || s.Len() != 1 {
			t.Fatal(err)
		}
		d.ears.Store(true)
		<-time.After(21 * time.Second) // of the bubble's clock
		synctest.Wait()
		if s.Len() != 0 || s.clients != 0 {
			t.Errorf("%d names and %d clients", s.Len(), s.clients)
		}
	})
}

// TestBigRequestsAreRefused: the bytes of a request are bounded before they are kept.
func TestBigRequestsAreRefused(t *testing.T) {
	s, at := serving(t, ServerConfig{})
	n := clientOf(t, Settings{Server: at})
	_, err := n.Lookup(t.Context(), "", "s")
	wants(t, "a connection", err, names.ErrNotFound)
	_, err = n.conn.NamesClient.Publish(t.Context(), &proto.PublishRequest{Name: messageOf(names.Name{Service: "s"}), Port: make([]byte, maxRequest)})
	if status.Code(err) != codes.ResourceExhausted || s.Len() != 0 {
		t.Errorf("%v, %d names", err, s.Len())
	}
}

// TestSecretsAreNotLogged: neither port names nor proofs of owners are logged.
func TestSecretsAreNotLogged(t *testing.T) {
	var log strings.Builder
	logger := hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace})
	s, at := serving(t, ServerConfig{Logger: logger})
	n := clientOf(t, Settings{Server: at, Owner: names.Owner([]byte(strings.Repeat("owner", 7))[:32]), Logger: logger})
	for range 2 { // the second is refused
		_ = n.Publish(t.Context(), "chem", "heat", "hunter2")
	}
	looksUp(t, n, "chem", "heat", "hunter2")
	n.Close()
	s.Close()
	if text := log.String(); strings.Contains(text, "hunter2") || strings.Contains(text, "owner") || !strings.Contains(text, "heat") {
		t.Errorf("the log: %s", text)
	}
}

// TestWrongKeysAreSlowed: the answers to wrong keys come later each time, and clients with
// the right key are not affected.
func TestWrongKeysAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect := piped(t, ServerConfig{})
		defer s.Close()
		guess := func() time.Duration {
			begin := time.Now()
			n := NewClient(Settings{Auth: startup.Auth{HasKey: true, Key: 43}, Dial: dialPipe(connect)})
			defer n.Close()
			wants(t, "wrong key", n.Publish(t.Context(), "", "heat", "port"), ErrDenied)
			return time.Since(begin)
		}
		var last time.Duration
		for i := range 10 {
			took := guess()
			if i == 0 && took != 0 || i > 0 && took < last || i > 0 && took == 0 {
				t.Errorf("wrong key %d is answered after %v, the one before after %v", i+1, took, last)
			}
			last = took
		}
		n := NewClient(Settings{Auth: theKey, Dial: dialPipe(connect)})
		defer n.Close()
		begin := time.Now()
		if err := n.Publish(t.Context(), "", "heat", "port"); err != nil || time.Since(begin) != 0 {
			t.Errorf("the right key: %v after %v", err, time.Since(begin))
		}
	})
}

// TestServerComesBack: names are published again by a server that has forgotten them,
// but for what somebody else took meanwhile.
func TestServerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		s, connect := piped(t, ServerConfig{})
		var up atomic.Pointer[func() net.Conn]
		up.Store(&connect)
		n := NewClient(Settings{Auth: theKey, Owner: names.Owner{1}, Dial: func(context.Context, string, string) (net.Conn, error) {
			if f := up.Load(); f != nil {
				return (*f)(), nil
			}
			return nil, errors.New("nobody listens")
		}})
		defer n.Close()
		for i := range 3 {
			if err := n.Publish(ctx, "", fmt.Sprint("s", i), "port"); err != nil {
				t.Fatal(err)
			}
		}
		up.Store(nil)
		s.Close()
		<-time.After(5 * time.Minute) // of the bubble's clock
		s, again := piped(t, ServerConfig{})
		defer s.Close()
		other := NewClient(Settings{Auth: theKey, Owner: names.Owner{2}, Dial: dialPipe(again)})
		defer other.Close()
		if err := other.Publish(ctx, "", "s1", "mine"); err != nil {
			t.Fatal(err)
		}
		up.Store(&again)
		<-time.After(lastPause + time.Second) // of the bubble's clock
		for i, want := range []string{"port", "mine", "port"} {
			looksUp(t, other, "", fmt.Sprint("s", i), want)
		}
		wants(t, "lost", n.Unpublish(ctx, "", "s1"), names.ErrUnknown)
		if err := n.Unpublish(ctx, "", "s0"); err != nil {
			t.Error(err)
		}
	})
}

// TestConnectionsEnd: connections that are not needed are closed, and those with names
// stay.
func TestConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		s, connect := piped(t, ServerConfig{})
		defer s.Close()
		n := NewClient(Settings{Auth: theKey, Dial: dialPipe(connect)})
		defer n.Close()
		clients := func(want int) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.clients != want {
				t.Errorf("%d clients, want %d", s.clients, want)
			}
		}
		_, err := n.Lookup(ctx, "", "heat")
		wants(t, "nothing", err, names.ErrNotFound)
		clients(1)
		<-time.After(3 * idlePause) // of the bubble's clock
		clients(0)
		if err := n.Publish(ctx, "", "heat", "port"); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * idleLimit) // of the bubble's clock
		clients(1)
		looksUp(t, n, "", "heat", "port")
		if err := n.Unpublish(ctx, "", "heat"); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * idlePause) // of the bubble's clock
		clients(0)
	})
}
