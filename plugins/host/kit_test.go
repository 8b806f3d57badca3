package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// limit is how long a test waits for something before it is called a hang.
const limit = 2 * time.Minute

func farOff() time.Time { return time.Now().Add(limit) }

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// watched is a Config whose changes of state and log can be waited for.
type watched struct {
	Config
	states chan Status
	log    *logBook
}

// builtin is without AutoMTLS, whose keys cost most of the time of a start. Tests
// that look at the start have it on.
func builtin(name, mode string) *watched {
	w := &watched{states: make(chan Status, 1000), log: &logBook{}}
	w.Config = Config{
		Name: name, Builtin: true, NoMTLS: true,
		// The race detector would have every plugin sleep a second before it exits.
		Env:      []string{envMode + "=" + mode, "GORACE=atexit_sleep_ms=0"},
		Restart:  Restart{Delay: time.Millisecond, MaxDelay: 4 * time.Millisecond, Healthy: time.Hour},
		OnStatus: func(s Status) { w.states <- s },
		Logger:   hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: w.log, JSONFormat: true}),
	}
	return w
}

func (w *watched) start(t testing.TB) *Plugin {
	t.Helper()
	p, err := Start(soon(t), w.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// reach waits for a state.
func (w *watched) reach(t testing.TB, want State) Status {
	t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case s := <-w.states:
			if s.State == want {
				return s
			}
		case <-timeout:
			t.Fatalf("never %s", want)
		}
	}
}

// logBook is a log that can be waited for.
type logBook struct {
	mu    sync.Mutex
	text  strings.Builder
	waits []chan struct{}
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.waits {
		close(c)
	}
	b.waits = nil
	return b.text.Write(p)
}

func (b *logBook) has(words ...string) bool {
	for line := range strings.Lines(b.text.String()) {
		found := true
		for _, w := range words {
			found = found && strings.Contains(line, w)
		}
		if found {
			return true
		}
	}
	return false
}

// wait waits for a line that has all the words.
func (b *logBook) wait(t testing.TB, words ...string) {
	t.Helper()
	timeout := time.After(limit)
	for {
		b.mu.Lock()
		if b.has(words...) {
			b.mu.Unlock()
			return
		}
		c := make(chan struct{})
		b.waits = append(b.waits, c)
		b.mu.Unlock()
		select {
		case <-c:
		case <-timeout:
			t.Fatalf("no line with %q in the log:\n%s", words, b.text.String())
		}
	}
}

// listen opens a listener of the kind that fits the transport.
func listen(t testing.TB, p *Plugin) transports.Listener {
	t.Helper()
	l, err := p.Transport().Listen(soon(t), transports.ListenSpec{Host: "127.0.0.1", Dir: privateDir(t), Name: "here"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// dialInto makes a dial that must fail.
func dialInto(t testing.TB, p *Plugin, address string) {
	t.Helper()
	if _, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: address}); err == nil {
		t.Fatalf("a dial to %s has succeeded", address)
	}
}

func privateDir(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pair dials a listener and accepts.
func pair(t testing.TB, from *Plugin, l transports.Listener) (dialled, accepted link.Link) {
	t.Helper()
	dialled, err := from.Transport().Dial(soon(t), transports.DialSpec{Address: l.Address()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	if accepted, err = l.Accept(soon(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return dialled, accepted
}

// stream is a link as a blocking reader and writer.
type stream struct {
	t testing.TB
	link.Link
}

func (s stream) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := s.Send([][]byte{p[done:]})
		done += n
		if err != nil {
			return done, err
		}
		if n == 0 {
			s.sleep(unix.POLLOUT, link.Writable)
		}
	}
	return done, nil
}

func (s stream) Read(p []byte) (int, error) {
	for {
		n, err := s.Recv([][]byte{p})
		if n > 0 || err != nil {
			return n, err
		}
		s.sleep(unix.POLLIN, link.Readable)
	}
}

func (s stream) sleep(events int16, want link.Interest) {
	if s.Arm(want) {
		return
	}
	fds := []unix.PollFd{{Fd: int32(s.Handle()), Events: events}}
	if n, err := unix.Poll(fds, int(limit.Milliseconds())); n == 0 || err != nil && !errors.Is(err, unix.EINTR) {
		s.t.Errorf("nothing happens on the link: %v", err)
		panic("hang")
	}
}

// exchange proves that a link works in both directions.
func exchange(t testing.TB, a, b link.Link) {
	t.Helper()
	for _, way := range [][2]link.Link{{a, b}, {b, a}} {
		if _, err := (stream{t, way[0]}).Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(stream{t, way[1]}, got); err != nil || string(got) != "ping" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// strike sends a signal to the plugin's process, and returns its PID.
func strike(t testing.TB, p *Plugin, sig syscall.Signal) int {
	t.Helper()
	pid := p.Status().PID
	if pid <= 0 { // would signal our own process group, or all processes
		t.Fatalf("no process: %+v", p.Status())
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitGone waits until a process, which need not be a child, has ended.
func waitGone(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
		if n == 1 {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatalf("process %d still runs: %v", pid, err)
		}
	}
}

// install puts a copy of a program where a plugin is expected.
func install(t testing.TB, dir, name, program string) string {
	t.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, Prefix+name)
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func script(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, Prefix+name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
