package host

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// A reload: another process, the same address, links that go on.
func TestReload(t *testing.T) {
	for _, name := range []string{"tcp", "unix"} {
		t.Run(name, func(t *testing.T) {
			w := builtin(name, "")
			p := w.start(t)
			l := listen(t, p)
			a, b := pair(t, p, l)
			address, before := l.Address(), p.Status().PID
			for range 2 {
				if err := p.Reload(soon(t)); err != nil {
					t.Fatal(err)
				}
				s := p.Status()
				if s.PID == before || s.State != StateHealthy || s.Failures != 0 {
					t.Errorf("after process %d: %+v", before, s)
				}
				waitGone(t, before)
				before = s.PID
				exchange(t, a, b)
				c, d := pair(t, p, l)
				exchange(t, c, d)
				if l.Address() != address {
					t.Errorf("it listens at %s, not at %s", l.Address(), address)
				}
			}
			if s := p.Status(); s.Starts != 3 {
				t.Errorf("%d starts, want 3", s.Starts)
			}
		})
	}
}

// A reload starts the file that is there now, not the one of the plugin's start. A file
// that is not trusted is not started, and the old process goes on.
func TestReloadTakesTheNewFile(t *testing.T) {
	dir := t.TempDir()
	w := builtin("tcp", "")
	w.Builtin = false
	text := "#!/bin/sh\nIMPI_BUILTIN_TRANSPORT=tcp exec '" + launchtest.Self(t) + "'\n"
	w.Path = script(t, dir, "tcp", text)
	first, err := Digest(w.Path)
	if err != nil {
		t.Fatal(err)
	}
	p := w.start(t)
	l := listen(t, p)
	script(t, dir, "tcp", text+"# version 2\n")
	if err := p.Reload(soon(t)); err != nil {
		t.Fatal(err)
	}
	second := p.Status().Digest
	if want, _ := Digest(w.Path); second != want || second == first {
		t.Errorf("it runs %s, the file is %s, and was %s", second, want, first)
	}
	c, d := pair(t, p, l)
	exchange(t, c, d)

	p.cfg.SHA256 = second
	script(t, dir, "tcp", text+"# version 3\n")
	pid := p.Status().PID
	if err := p.Reload(soon(t)); !errors.Is(err, ErrChecksum) {
		t.Errorf("a file that is not pinned: %v", err)
	}
	if err := os.Remove(w.Path); err != nil {
		t.Fatal(err)
	}
	if err := p.Reload(soon(t)); !errors.Is(err, ErrNotFound) {
		t.Errorf("no file: %v", err)
	}
	if s := p.Status(); s.PID != pid || s.State != StateHealthy {
		t.Errorf("the old process does not go on: %+v", s)
	}
	c, d = pair(t, p, l)
	exchange(t, c, d)
}

// A new process that is killed at once counts as one more death: it is started again, with
// its listeners.
func TestKillAfterReload(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	l := listen(t, p)
	if err := p.Reload(soon(t)); err != nil {
		t.Fatal(err)
	}
	strike(t, p, syscall.SIGKILL)
	w.reach(t, StateBackoff)
	a, b := pair(t, p, l)
	exchange(t, a, b)
}

func TestReloadOfClosed(t *testing.T) {
	p := builtin("tcp", "").start(t)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Reload(soon(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestAddressTaken: while no process of a plugin had the port of a listener, another program got
// it. The listener is there again when that program has ended.
func TestAddressTaken(t *testing.T) {
	dir := t.TempDir()
	hold := filepath.Join(dir, "hold")
	w := builtin("tcp", "")
	w.Builtin = false
	w.Path = script(t, dir, "tcp", "#!/bin/sh\nwhile test -e '"+hold+"'; do sleep 0.02; done\nIMPI_BUILTIN_TRANSPORT=tcp exec '"+launchtest.Self(t)+"'\n")
	p := w.start(t)
	l := listen(t, p)
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := p.Status().PID
	strike(t, p, syscall.SIGKILL)
	waitGone(t, before)
	at, _, _ := strings.Cut(l.Address(), "/")
	other, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	w.reach(t, StateBackoff)
	w.reach(t, StateHealthy)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for ctx := soon(t); ; {
		x, err := p.Transport().Dial(ctx, transports.DialSpec{Address: l.Address()})
		if err == nil {
			x.Close()
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if x, err := l.Accept(soon(t)); err == nil {
		x.Close()
	}
	a, b := pair(t, p, l)
	exchange(t, a, b)
}
