package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// through makes a link between two plugins, with the data plane pinned on each side.
func through(t *testing.T, plane transports.DataPlane, near, far *Plugin) (a, b link.Link) {
	t.Helper()
	planes := []transports.DataPlane{plane}
	l, err := far.Pinned(planes).Listen(soon(t), transports.ListenSpec{Host: "127.0.0.1", Dir: privateDir(t), Name: "here"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if a, err = near.Pinned(planes).Dial(soon(t), transports.DialSpec{Address: l.Address()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if b, err = l.Accept(soon(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return a, b
}

// Every link knows its data plane and why it has that one.
func TestOrigin(t *testing.T) {
	p := builtin("tcp", "").start(t)
	for plane, why := range map[transports.DataPlane]string{
		"": "allows the best plane", transports.PlaneFD: "config wants fd", transports.PlaneRing: "config wants ring",
		transports.PlaneStream: "config wants stream", transports.PlaneGRPC: "config wants grpc",
	} {
		var planes []transports.DataPlane
		if plane != "" {
			planes = append(planes, plane)
		} else {
			plane = transports.PlaneFD
		}
		l := listen(t, p)
		x, err := p.Pinned(planes).Dial(soon(t), transports.DialSpec{Address: l.Address()})
		if err != nil {
			t.Fatal(err)
		}
		from, ok := OriginOf(x)
		if !ok || from.Transport != "tcp" || from.Plane != plane || from.When.IsZero() || !strings.Contains(from.Reason, why) {
			t.Errorf("%s: %+v", plane, from)
		}
		if y, relayed := x.(transports.Relayed); relayed != (plane != transports.PlaneFD) || relayed && y.Plane() != plane {
			t.Errorf("%s: a %T", plane, x)
		}
		x.Close()
	}
	if _, ok := OriginOf(stream{}); ok {
		t.Error("a link of somebody else has an origin")
	}
}

// The first plane of the list that the link can do is taken, and the reason says
// what was passed over.
func TestPinnedList(t *testing.T) {
	p := builtin("tcp", "").start(t)
	l := listen(t, p)
	x, err := p.Pinned([]transports.DataPlane{transports.PlanePeerSHM, transports.PlaneStream}).Dial(soon(t), transports.DialSpec{Address: l.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if from, _ := OriginOf(x); from.Plane != transports.PlaneStream || !strings.Contains(from.Reason, "a kernel socket, which cannot do peer-shm") {
		t.Errorf("%+v", from)
	}
}

// A pinned plane that is not possible is no link, and the error says what would be.
func TestPinnedImpossible(t *testing.T) {
	p := builtin("tcp", "").start(t)
	l := listen(t, p)
	x, err := p.Pinned([]transports.DataPlane{transports.PlanePeerSHM}).Dial(soon(t), transports.DialSpec{Address: l.Address()})
	var te *transports.Error
	if x != nil || !errors.As(err, &te) || te.Code != transports.CodeUnsupported ||
		!strings.Contains(te.Reason, "it can do data plane fd, ring, stream, grpc; the site's config allows peer-shm") {
		t.Errorf("%v", err)
	}
}

// A plugin that is killed ends the links whose bytes it passes on, at once and with its
// name in the error; those that it has handed over live on.
func TestKillByPlane(t *testing.T) {
	for _, plane := range []transports.DataPlane{transports.PlaneFD, transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC} {
		t.Run(string(plane), func(t *testing.T) {
			near, far := builtin("tcp", "").start(t), builtin("tcp", "").start(t)
			a, b := through(t, plane, near, far)
			idle, _ := through(t, plane, near, far)
			exchange(t, a, b)
			strike(t, near, syscall.SIGKILL)
			if plane == transports.PlaneFD {
				exchange(t, a, b)
				return
			}
			for _, x := range []link.Link{a, idle} {
				killed(t, x, plane)
			}
			if n, err := (stream{t, b}).Read(make([]byte, 1)); n != 0 || !errors.Is(err, link.ErrBroken) {
				t.Errorf("the other end: %d, %v", n, err)
			}
		})
	}
}

func killed(t *testing.T, x link.Link, plane transports.DataPlane) {
	t.Helper()
	_, err := (stream{t, x}).Read(make([]byte, 1))
	want := fmt.Sprintf("the plugin of transport tcp, which passes its bytes on (data plane %s), has died", plane)
	if !errors.Is(err, link.ErrBroken) || !strings.Contains(err.Error(), want) {
		t.Errorf("Recv: %v", err)
	}
	_, err = (stream{t, x}).Write(make([]byte, 8<<20))
	if !errors.Is(err, link.ErrBroken) || !strings.Contains(err.Error(), want) {
		t.Errorf("Send: %v", err)
	}
}

// The death of the peer's plugin reaches both ends.
func TestKillOfFarPlugin(t *testing.T) {
	for _, plane := range []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC} {
		t.Run(string(plane), func(t *testing.T) {
			near, far := builtin("tcp", "").start(t), builtin("tcp", "").start(t)
			a, b := through(t, plane, near, far)
			exchange(t, a, b)
			strike(t, far, syscall.SIGKILL)
			killed(t, b, plane)
			_, err := (stream{t, a}).Read(make([]byte, 1))
			if want := "the plugin of transport tcp, which passes its bytes on"; !errors.Is(err, link.ErrBroken) || !strings.Contains(err.Error(), want) {
				t.Errorf("the near end: %v", err)
			}
		})
	}
}

// A proc that has the connection itself does not take the death of the peer's plugin for an
// end that the peer meant; after a meant end, that death does no harm.
func TestKillOfFarPluginBesideASocket(t *testing.T) {
	for _, plane := range []transports.DataPlane{transports.PlaneRing, transports.PlaneStream} {
		for _, meant := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", plane, meant), func(t *testing.T) {
				near, far := builtin("tcp", "").start(t), builtin("tcp", "").start(t)
				l, err := far.Pinned([]transports.DataPlane{plane}).Listen(soon(t), transports.ListenSpec{Host: "127.0.0.1"})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				a, b := pair(t, near, l)
				if meant {
					if _, err := (stream{t, b}).Write([]byte("last words")); err != nil {
						t.Fatal(err)
					}
					if err := b.CloseSend(); err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(stream{t, a})
					if err != nil || string(got) != "last words" {
						t.Errorf("%q, %v", got, err)
					}
				} else {
					exchange(t, a, b)
				}
				strike(t, far, syscall.SIGKILL)
				_, err = (stream{t, a}).Read(make([]byte, 1))
				if errors.Is(err, link.ErrBroken) == meant || errors.Is(err, io.EOF) != meant {
					t.Errorf("the peer's end was meant: %t; it is %v", meant, err)
				}
			})
		}
	}
}

// A plugin that is closed in order still sends what procs have written.
func TestCloseFlushesWhatProcsLeft(t *testing.T) {
	for _, plane := range []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC} {
		t.Run(string(plane), func(t *testing.T) {
			near, far := builtin("tcp", "").start(t), builtin("tcp", "").start(t)
			a, b := through(t, plane, near, far)
			const size = 24 << 20
			got := make(chan error, 1)
			go func() {
				n, err := io.Copy(io.Discard, stream{t, b})
				if n != size {
					err = fmt.Errorf("%d bytes came, %d were sent: %w", n, size, err)
				}
				got <- err
			}()
			if _, err := (stream{t, a}).Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(a.CloseSend(), a.Close(), near.Close()); err != nil {
				t.Fatal(err)
			}
			if err := <-got; err != nil {
				t.Error(err)
			}
		})
	}
}

// Links that have ended leave no descriptor in the plugins that passed their bytes on.
func TestPluginKeepsNoDescriptors(t *testing.T) {
	for _, plane := range []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC} {
		t.Run(string(plane), func(t *testing.T) {
			near, far := builtin("tcp", "").start(t), builtin("tcp", "").start(t)
			round := func() {
				a, b := through(t, plane, near, far)
				exchange(t, a, b)
				a.Close()
				b.Close()
			}
			round()
			before := quietFDs(t, near)
			for range 20 {
				round()
			}
			if after := quietFDs(t, near); after > before+2 {
				t.Errorf("%d descriptors, then %d", before, after)
			}
		})
	}
}

// quietFDs counts the plugin's descriptors once it passes no bytes on.
func quietFDs(t *testing.T, p *Plugin) int {
	t.Helper()
	for {
		s, err := p.Stats(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		if s.GetPumped() == 0 {
			break
		}
	}
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Status().PID))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// The control connection as a data plane is warned about, once.
func TestGRPCWarnsOnce(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	through(t, transports.PlaneGRPC, p, p)
	through(t, transports.PlaneGRPC, p, p)
	w.log.wait(t, "warn", "data plane grpc", "config wants grpc")
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if n := strings.Count(w.log.text.String(), "pass through the control connection"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

// A region must be memory of the size that was asked for.
func TestRegionIsChecked(t *testing.T) {
	for name, make := range map[string]func(t *testing.T) int{
		"too large": func(t *testing.T) int {
			fd, err := ring.Create(2 * ring.DefaultSize)
			if err != nil {
				t.Fatal(err)
			}
			return fd
		},
		"sparse": func(t *testing.T) int {
			fd, err := unix.MemfdCreate("sparse", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Ftruncate(fd, 1<<20); err != nil {
				t.Fatal(err)
			}
			return fd
		},
	} {
		t.Run(name, func(t *testing.T) {
			fd := make(t)
			s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(s[0])
			r := handover.Record{Kind: handover.KindLink, Mode: handover.ModeRing, Side: 1, FDs: []int{fd, s[1]}}
			if l, err := linkOf(r, Origin{Transport: "x", Plane: transports.PlaneRing}); !errors.Is(err, ring.ErrRegion) {
				t.Errorf("%v, %v", l, err)
			}
			for _, fd := range []int{fd, s[1]} {
				if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
					t.Errorf("descriptor %d is open: %v", fd, err)
				}
			}
		})
	}
}

// A record must be one of the plane that was agreed on.
func TestRecordMustFitPlane(t *testing.T) {
	for mode, plane := range map[handover.Mode]transports.DataPlane{
		handover.ModeFD: transports.PlaneRing, handover.ModePeerSHM: transports.PlaneRing,
		handover.ModeRing: transports.PlanePeerSHM, handover.ModeStream: transports.PlaneFD,
	} {
		if l, err := linkOf(handover.Record{Kind: handover.KindLink, Mode: mode}, Origin{Plane: plane}); err == nil {
			t.Errorf("mode %d for %s makes a %T", mode, plane, l)
		}
	}
}
