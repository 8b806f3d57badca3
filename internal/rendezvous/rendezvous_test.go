package rendezvous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is a server that runs, and what becomes of it.
type job struct {
	addr   string
	cancel context.CancelCauseFunc
	result chan error
}

func serve(t *testing.T, cfg startup.ServerConfig) *job {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, ln, cfg)
}

func serveOn(t *testing.T, ln net.Listener, cfg startup.ServerConfig) *job {
	if cfg.Auth.Mask() == 0 {
		cfg.Auth = startup.Auth{None: true}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	j := &job{addr: ln.Addr().String(), cancel: cancel, result: make(chan error, 1)}
	go func() { j.result <- Serve(ctx, ln, Config{Server: cfg}) }()
	t.Cleanup(func() { cancel(errors.New("test is over")) })
	return j
}

func client(rank wire.ClientRank) startup.ClientConfig {
	host := wire.HostIDFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + rank)}), wire.IPv4Compatible)
	return startup.ClientConfig{
		Rank: rank, Auth: startup.Auth{None: true}, Params: startup.DefaultParams(),
		Hosts: []startup.HostConfig{{Address: host, Port: 5000, Procs: []startup.ProcConfig{{ID: wire.Proc{Host: host, PID: 1}, Card: []byte("card")}}}},
	}
}

// joined is what Join returns.
type joined struct {
	s   *Client
	j   *startup.Job
	err error
}

func join(ctx context.Context, addr string, cfgs ...startup.ClientConfig) []joined {
	results := make([]joined, len(cfgs))
	var wg sync.WaitGroup
	for i, cfg := range cfgs {
		wg.Go(func() {
			r := &results[i]
			r.s, r.j, r.err = Join(ctx, Settings{Server: addr}, cfg)
		})
	}
	wg.Wait()
	return results
}

func mustJoin(t *testing.T, addr string, cfgs ...startup.ClientConfig) []*Client {
	t.Helper()
	var s []*Client
	for i, r := range join(t.Context(), addr, cfgs...) {
		if r.err != nil {
			t.Fatalf("client %d: %v", i, r.err)
		}
		s = append(s, r.s)
	}
	return s
}

func wantError(t *testing.T, who string, err, want error, says string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v; want %v with %q", who, err, want, says)
	}
}

func TestJobFromStartToEnd(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 3})
	results := join(t.Context(), srv.addr, client(2), client(0), client(1))
	for i, r := range results {
		if r.err != nil {
			t.Fatalf("client %d: %v", i, r.err)
		}
		if r.j.Size() != 3 || r.j.Procs.Len() != 3 || !r.j.AllOwn || string(r.j.Procs.At(2).Card) != "card" {
			t.Errorf("job %+v", r.j)
		}
	}
	for _, r := range results {
		if err := r.s.Finish(); err != nil {
			t.Error(err)
		}
		if err := r.s.Finish(); err != nil {
			t.Errorf("a second time: %v", err)
		}
		select {
		case <-r.s.Lost():
			t.Error("an orderly end is no loss")
		default:
		}
	}
	if err := <-srv.result; err != nil {
		t.Error(err)
	}
}

// TestKey runs a job that authenticates, from a key in both.
func TestKey(t *testing.T) {
	auth := startup.Auth{HasKey: true, Key: 1<<63 + 5}
	srv := serve(t, startup.ServerConfig{Clients: 1, Auth: auth})
	cfg := client(0)
	cfg.Auth = startup.Auth{None: true, HasKey: true, Key: auth.Key}
	mustJoin(t, srv.addr, cfg)[0].Finish()
	if err := <-srv.result; err != nil {
		t.Error(err)
	}
}

// TestClientBeforeServer: a client waits for a server that is not there yet.
func TestClientBeforeServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var srv *job
	tries := 0
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if tries++; tries < 3 {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		srv = serveOn(t, ln, startup.ServerConfig{Clients: 1})
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	s, _, err := Join(t.Context(), Settings{Server: ln.Addr().String(), Dial: dial}, client(0))
	if err != nil {
		t.Fatal(err)
	}
	s.Finish()
	if err := <-srv.result; err != nil || tries != 3 {
		t.Errorf("%d tries: %v", tries, err)
	}
}

// TestFromAddress: the server sees the address that the site gave.
func TestFromAddress(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- Serve(t.Context(), ln, Config{
			Server: startup.ServerConfig{Clients: 1, Auth: startup.Auth{None: true}},
			Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug}),
		})
	}()
	s, _, err := Join(t.Context(), Settings{Server: ln.Addr().String(), From: netip.MustParseAddr("127.0.0.7")}, client(0))
	if err != nil {
		t.Fatal(err)
	}
	s.Finish()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"client joined: client=0 peer=127.0.0.7:", "answered C_VERSION from clients {0}", "the job is running", "client 0 has finished"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

// TestNoServer: a client tries again, until it is stopped.
func TestNoServer(t *testing.T) {
	free, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	dials := 0
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials == 2 {
			cancel(errors.New("interrupted by the operator"))
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	_, _, err = Join(ctx, Settings{Server: free.String(), Dial: dial}, client(0))
	wantError(t, "client", err, ErrNoServer, free.String()+": interrupted by the operator")
	wantError(t, "client", err, syscall.ECONNREFUSED, "connection refused")

	_, _, err = Join(t.Context(), Settings{Server: "127.0.0.1"}, client(0))
	wantError(t, "no port", err, ErrNoServer, "missing port")

	_, _, err = Join(ctx, Settings{Server: free.String()}, client(0))
	wantError(t, "cancelled", err, ErrNoServer, "interrupted by the operator")
}

// TestNoServerInTime: once the limit is over the reason is the last one that is not the end of the
// limit, also if the last attempt notices that before anybody else.
func TestNoServerInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := time.Now().Add(time.Minute)
		dial := func(context.Context, string, string) (net.Conn, error) {
			if time.Until(over) > 2*time.Second {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			<-time.After(time.Until(over))
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
		}
		cfg := client(0)
		cfg.Limit = time.Minute
		_, _, err := Join(t.Context(), Settings{Server: "server:1", Dial: dial}, cfg)
		wantError(t, "client", err, ErrNoServer, "server:1")
		wantError(t, "client", err, startup.ErrTimeout, "connection refused")
	})
}

// TestClientNeverComes has a clock of its own: one that comes is there before the limit is over.
func TestClientNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := rpc.NewListener()
		srv := serveOn(t, ln, startup.ServerConfig{Clients: 2, Limit: time.Minute})
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go ln.Put(rpc.NewConn(far, nil))
			return near, nil
		}
		_, _, err := Join(t.Context(), Settings{Server: "server:1", Dial: dial}, client(0))
		wantError(t, "client 0", err, startup.ErrFailed, "clients {1} of 2 did not come")
		wantError(t, "server", <-srv.result, startup.ErrTimeout, "clients {1} of 2 did not come")
	})
}

func TestClientComesTwice(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 3})
	for i, r := range join(t.Context(), srv.addr, client(1), client(1)) {
		wantError(t, fmt.Sprint("client ", i), r.err, startup.ErrFailed, "both say they are client 1")
	}
	wantError(t, "server", <-srv.result, startup.ErrRank, "both say they are client 1")
}

func TestRankTooHigh(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 2})
	r := join(t.Context(), srv.addr, client(31))
	wantError(t, "client", r[0].err, startup.ErrFailed, "client 31, in a job of 2 clients")
	wantError(t, "server", <-srv.result, startup.ErrRank, "client 31")
	r = join(t.Context(), srv.addr, client(32))
	wantError(t, "rank 32", r[0].err, startup.ErrConfig, "client rank 32")

	// A client that does not look at its own rank, in the largest job there is.
	for _, rank := range []int32{32, -1} {
		srv = serve(t, startup.ServerConfig{Clients: wire.MaxClients})
		nc := dialRaw(t, srv.addr)
		nc.Write(wire.AppendIMPI(wire.AppendAuth(nil, wire.AuthNone), rank))
		says := fmt.Sprintf("client %d, in a job of 32 clients", rank)
		if answer, err := io.ReadAll(nc); err != nil || !strings.Contains(string(answer), says) {
			t.Errorf("rank %d: %q, %v", rank, answer, err)
		}
		nc.Close()
		wantError(t, "server", <-srv.result, startup.ErrRank, says)
	}
}

// TestWrongKey: a client with another job's key is told so; the job waits for one with the
// right key.
func TestWrongKey(t *testing.T) {
	right := startup.Auth{HasKey: true, Key: 1}
	srv := serve(t, startup.ServerConfig{Clients: 1, Auth: right})
	cfg := client(0)
	cfg.Auth = startup.Auth{HasKey: true, Key: 2}
	r := join(t.Context(), srv.addr, cfg)
	wantError(t, "client", r[0].err, startup.ErrFailed, "wrong key")
	cfg.Auth = startup.Auth{None: true}
	r = join(t.Context(), srv.addr, cfg)
	wantError(t, "client", r[0].err, startup.ErrFailed, "it offers NONE, this server takes KEY")
	cfg.Auth = right
	mustJoin(t, srv.addr, cfg)[0].Finish()
	if err := <-srv.result; err != nil {
		t.Error(err)
	}
}

// TestClosesHalfWay: a client that dies in the middle of a command.
func TestClosesHalfWay(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 2})
	nc := dialRaw(t, srv.addr)
	nc.Write(wire.AppendIMPI(wire.AppendAuth(nil, wire.AuthNone), 1))
	go func() {
		defer nc.Close()
		io.ReadFull(nc, make([]byte, wire.AuthChoiceSize+wire.CommandSize+4)) // all clients are here
		nc.Write([]byte("COLL"))
	}()
	r := join(t.Context(), srv.addr, client(0))
	wantError(t, "client 0", r[0].err, startup.ErrFailed, "client 1 (127.0.0.1:")
	wantError(t, "server", <-srv.result, startup.ErrLost, "client 1 (127.0.0.1:")
}

func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// TestHugeLength: a client that announces 2^31-1 bytes is refused with the reason.
func TestHugeLength(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 1})
	nc := dialRaw(t, srv.addr)
	b := wire.AppendIMPI(wire.AppendAuth(nil, wire.AuthNone), 0)
	nc.Write(wire.AppendCommand(b, wire.CmdColl, 1<<31-1))
	answer, err := io.ReadAll(nc)
	if err != nil || !bytes.Contains(answer, []byte("COLL of 2147483647 bytes")) {
		t.Errorf("%q: %v", answer, err)
	}
	nc.Close()
	wantError(t, "server", <-srv.result, startup.ErrTooLong, "client 0 (127.0.0.1:")
}

// TestStrangersDoNoHarm: scans and browsers come and go while a job starts.
func TestStrangersDoNoHarm(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 1})
	silent, browser := dialRaw(t, srv.addr), dialRaw(t, srv.addr)
	dialRaw(t, srv.addr).Close()
	fmt.Fprintf(browser, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if b, _ := io.ReadAll(browser); !bytes.Contains(b, []byte("0x47455420 where AUTH should be")) {
		t.Errorf("%q", b)
	}
	browser.Close()
	s := mustJoin(t, srv.addr, client(0))[0]
	if b, _ := io.ReadAll(silent); !bytes.Contains(b, []byte("takes no more clients")) {
		t.Errorf("%q", b)
	}
	silent.Close()
	s.Finish()
	if err := <-srv.result; err != nil {
		t.Error(err)
	}
}

// TestFailReachesAll: one client's reason is everybody's error.
func TestFailReachesAll(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 3})
	s := mustJoin(t, srv.addr, client(0), client(1), client(2))
	s[1].Fail(errors.New("rank 1 on beta was killed by signal 9"))
	for i := range s {
		<-s[i].Lost()
		if err := s[i].Err(); err == nil || !strings.Contains(err.Error(), "rank 1 on beta was killed by signal 9") {
			t.Errorf("client %d: %v", i, err)
		}
	}
	wantError(t, "client 0", s[0].Finish(), startup.ErrFailed, "client 1 (")
	wantError(t, "server", <-srv.result, startup.ErrFailed, "rank 1 on beta")
}

// TestClientDies: a client closes without FAIL; the server says which one has gone.
func TestClientDies(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 2})
	s := mustJoin(t, srv.addr, client(0), client(1))
	s[1].nc.Close()
	<-s[0].Lost()
	wantError(t, "client 0", s[0].Err(), startup.ErrFailed, "client 1 (127.0.0.1:")
	<-s[1].Lost()
	wantError(t, "client 1", s[1].Err(), startup.ErrLost, "")
	wantError(t, "server", <-srv.result, startup.ErrLost, "client 1")
}

// TestServerStops: the end of its context is told to all.
func TestServerStops(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 1})
	s := mustJoin(t, srv.addr, client(0))[0]
	srv.cancel(errors.New("operator pressed ^C"))
	<-s.Lost()
	wantError(t, "client", s.Err(), startup.ErrFailed, "operator pressed ^C")
	if err := <-srv.result; err == nil || !strings.Contains(err.Error(), "operator pressed ^C") {
		t.Error(err)
	}
}

// TestJoinCancelled: a client that is stopped while it waits tells the others.
func TestJoinCancelled(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 2})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &cancelAfterWrites{nc, 2, func() { cancel(errors.New("site was stopped")) }}, err
	}
	_, _, err := Join(ctx, Settings{Server: srv.addr, Dial: dial}, client(0))
	if err == nil || !strings.Contains(err.Error(), "site was stopped") {
		t.Errorf("client: %v", err)
	}
	wantError(t, "server", <-srv.result, startup.ErrFailed, "site was stopped")
}

// cancelAfterWrites calls f after the nth Write.
type cancelAfterWrites struct {
	net.Conn
	n int
	f func()
}

func (c *cancelAfterWrites) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.n--; c.n == 0 {
		c.f()
	}
	return n, err
}

// TestLastWordsOfAStoppedClient: the end of the context interrupts what the client waits
// for, but not its last message.
func TestLastWordsOfAStoppedClient(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 2})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, address)
		stop := func() { cancel(errors.New("site was stopped")) }
		return &stopAtDeadline{Conn: nc, n: 2, stop: stop, interrupted: make(chan struct{})}, err
	}
	_, _, err := Join(ctx, Settings{Server: srv.addr, Dial: dial}, client(0))
	if err == nil || !strings.Contains(err.Error(), "site was stopped") {
		t.Errorf("client: %v", err)
	}
	wantError(t, "server", <-srv.result, startup.ErrFailed, "site was stopped")
}

// stopAtDeadline calls stop when the nth deadline has been set, and returns when
// the interruption that follows has set another one, in the past.
type stopAtDeadline struct {
	net.Conn
	n           int
	stop        func()
	interrupted chan struct{}
}

func (c *stopAtDeadline) SetDeadline(at time.Time) error {
	err := c.Conn.SetDeadline(at)
	if at.Before(time.Now().Add(-time.Hour)) {
		close(c.interrupted)
		return err
	}
	if c.n--; c.n == 0 {
		c.stop()
		<-c.interrupted
	}
	return err
}

// TestSlowClient: a client that does not read delays nobody. Its answers, which are more
// than socket buffers hold, wait for it alone.
func TestSlowClient(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 2})
	slow := dialRaw(t, srv.addr)
	block := make([]byte, startup.MaxSubmission-wire.SubmissionSize)
	b := wire.AppendIMPI(wire.AppendAuth(nil, wire.AuthNone), 1)
	b = wire.AppendColl(b, 1, block) // below all labels that a client of ours sends
	b = wire.AppendCommand(b, wire.CmdDone, 0)
	wrote := make(chan error, 1)
	go func() { _, err := slow.Write(b); wrote <- err }()
	r := join(t.Context(), srv.addr, client(0))
	wantError(t, "client 0", r[0].err, startup.ErrValue, "C_NHOSTS: startup value is wrong: clients {1} did not send it")
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	io.Copy(io.Discard, slow) // until the server has closed
	slow.Close()
	wantError(t, "server", <-srv.result, startup.ErrFailed, "clients {1} did not send it")
}

func TestServeRefusesItsConfig(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "server", Serve(t.Context(), ln, Config{}), startup.ErrConfig, "0 clients")
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is still open: %v", err)
	}
}
