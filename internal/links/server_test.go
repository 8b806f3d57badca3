package links

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openimpi/impi/internal/skips"
)

// strangerVariable makes the test binary ask the socket that it names.
const strangerVariable = "IMPI_TEST_STRANGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(strangerVariable); path != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := Ask(ctx, path, Request{Op: OpLinks})
		os.Stdout.WriteString(err.Error())
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// serve opens a control socket in a directory with a short name.
func serve(t *testing.T, handle func(context.Context, Request) Answer) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "impi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := Serve(filepath.Join(dir, SocketName), handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return dir
}

func hello(context.Context, Request) Answer { return Answer{Node: &Node{State: NodeRunning}} }

// TestRequestArrivesWhole: the node gets all that it is asked.
func TestRequestArrivesWhole(t *testing.T) {
	asked := Request{
		Op: OpProbe, Host: "10.77.0.2", Number: 3, Here: true, All: true, AllUpTo: 4, Local: 5, Peer: 6, Transport: "tcp", Force: true,
		Sites: true, Calls: true, Account: true, Log: true, ByHost: true, Views: 7, Check: true, Text: "job", Limit: time.Second,
	}
	v := reflect.ValueOf(asked)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried", v.Type().Field(i).Name)
		}
	}
	want := asked
	want.Views, want.Check, want.Text, want.Limit = 0, false, "", 0 // which hosts say to each other alone
	dir := serve(t, func(_ context.Context, got Request) Answer {
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		return Answer{}
	})
	if _, err := ask(t, dir, asked); err != nil {
		t.Error(err)
	}
}

func ask(t *testing.T, dir string, r Request) (*Answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return Ask(ctx, filepath.Join(dir, SocketName), r)
}

func TestAskAndAnswer(t *testing.T) {
	var got Request
	dir := serve(t, func(ctx context.Context, r Request) Answer {
		got = r
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the answer may take any time")
		}
		return Answer{Measure: &Measure{Rounds: 7}}
	})
	a, err := ask(t, dir, Request{Op: OpProbe, Local: 1, Peer: 2, Transport: "tcp"})
	if err != nil || a.Measure == nil || a.Measure.Rounds != 7 {
		t.Fatalf("%+v %v", a, err)
	}
	if got.Op != OpProbe || got.Local != 1 || got.Peer != 2 || got.Transport != "tcp" {
		t.Errorf("%+v arrived", got)
	}
	if st, err := os.Stat(filepath.Join(dir, SocketName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode: %v %v", st.Mode(), err)
	}
}

func TestAskWithoutDeadline(t *testing.T) {
	if _, err := Ask(context.Background(), "nowhere", Request{}); !errors.Is(err, ErrRequest) {
		t.Errorf("%v", err)
	}
}

// TestBadRequests: what is no request is not answered, and ends the connection.
func TestBadRequests(t *testing.T) {
	dir := serve(t, func(context.Context, Request) Answer {
		t.Error("it was answered")
		return Answer{}
	})
	for name, b := range map[string][]byte{
		"not HTTP/2":     []byte("GET / HTTP/1.1\r\n\r\n"),
		"version 1":      []byte(`{"version":1,"op":"links"}` + "\n"),
		"an endless one": bytes.Repeat([]byte("x"), maxRequest),
	} {
		c, err := net.Dial("unix", filepath.Join(dir, SocketName))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = c.Write(b) }()
		if got, _ := io.ReadAll(c); strings.Contains(string(got), "node") { // the server's settings may come first
			t.Errorf("%s: %q", name, got)
		}
		c.Close()
	}
	if _, err := ask(t, dir, Request{Op: Op(strings.Repeat("x", maxRequest))}); err == nil || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("a request that is too big: %v", err)
	}
}

// TestFewAskAtATime: more than maxAsking connections have to wait.
func TestFewAskAtATime(t *testing.T) {
	dir := serve(t, hello)
	var mute []net.Conn
	for range maxAsking {
		c, err := net.Dial("unix", filepath.Join(dir, SocketName))
		if err != nil {
			t.Fatal(err)
		}
		mute = append(mute, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, filepath.Join(dir, SocketName), Request{Op: OpLinks}); !errors.Is(err, ErrSilent) {
		t.Errorf("beside %d others: %v", maxAsking, err)
	}
	for _, c := range mute {
		c.Close()
	}
	if _, err := ask(t, dir, Request{Op: OpLinks}); err != nil {
		t.Error(err)
	}
}

// TestManyAskAtOnce: each of many who ask at the same time, and more than are served at a time, has
// an answer.
func TestManyAskAtOnce(t *testing.T) {
	dir := serve(t, hello)
	const many = 2 * maxAsking
	errs := make(chan error, many)
	for range many {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err := Ask(ctx, filepath.Join(dir, SocketName), Request{Op: OpLinks})
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestStrangers(t *testing.T) {
	for _, c := range []struct {
		peer, self uint32
		ok         bool
	}{{1000, 1000, true}, {0, 1000, true}, {0, 0, true}, {1001, 1000, false}, {1000, 0, false}} {
		if err := judgePeer(c.peer, c.self); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrOtherUser) {
			t.Errorf("user %d at user %d's: %v", c.peer, c.self, err)
		}
	}
}

// TestOtherUserIsRefused has a real process of another user ask, at a socket that
// somebody has opened to everybody.
func TestOtherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		skips.NotRun(t, "only root can be another user", "be root")
	}
	dir := serve(t, hello)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "stranger")
	for _, err := range []error{os.WriteFile(program, b, 0o755), os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, SocketName), 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program)
	cmd.Env = []string{strangerVariable + "=" + filepath.Join(dir, SocketName)}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "peer of another user: user 65534; this is user 0's") {
		t.Errorf("%q %v", out, err)
	}
	if got, err := ask(t, dir, Request{Op: OpLinks}); err != nil || got.Node == nil {
		t.Errorf("its own user hears %v", err)
	}
}

// TestHungNode: a socket at which nobody answers.
func TestHungNode(t *testing.T) {
	release := make(chan struct{})
	dir := serve(t, func(context.Context, Request) Answer { <-release; return Answer{} })
	defer close(release)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, filepath.Join(dir, SocketName), Request{Op: OpLinks}); !errors.Is(err, ErrSilent) {
		t.Errorf("%v", err)
	}
}

// TestCloseEndsEverything: a handler that waits for its context, and a caller who
// says nothing, keep nobody.
func TestCloseEndsEverything(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "impi")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, SocketName)
	asked := make(chan struct{})
	s, err := Serve(path, func(ctx context.Context, _ Request) Answer { close(asked); <-ctx.Done(); return Answer{} })
	if err != nil {
		t.Fatal(err)
	}
	mute, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	answered := make(chan error)
	go func() {
		_, err := ask(t, dir, Request{Op: OpLinks})
		answered <- err
	}()
	<-asked
	s.Close()
	if err := <-answered; !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
	if _, err := ask(t, dir, Request{Op: OpLinks}); !errors.Is(err, ErrGone) {
		t.Errorf("after Close: %v", err)
	}
}

// TestCloseWithoutTheHandler: a handler that never returns does not keep the node from ending.
func TestCloseWithoutTheHandler(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "impi")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	asked, returns := make(chan struct{}), make(chan struct{})
	s, err := Serve(filepath.Join(dir, SocketName), func(context.Context, Request) Answer {
		close(asked)
		<-returns
		return Answer{}
	})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if _, err := ask(t, dir, Request{Op: OpLinks}); err == nil {
			t.Error("an answer of a server that was closed")
		}
	}()
	<-asked
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Drain(10 * time.Millisecond)
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit + 20*time.Second):
		t.Error("it waits on")
	}
	close(returns)
	<-closed
	<-answered
}
