package chaos_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/transports/support/chaos"
	"github.com/openimpi/impi/transports/tcp"
	unixsocket "github.com/openimpi/impi/transports/unix"
)

func TestConfigureReportsAllFaults(t *testing.T) {
	for name, c := range map[string]struct {
		set  map[string]any
		want []string // settings that are wrong
	}{
		"defaults":        {},
		"a duration":      {map[string]any{"delay": "fast", "jitter": "-1s", "cut_after": "2h"}, []string{"cut_after", "delay", "jitter"}},
		"numbers":         {map[string]any{"seed": -1.0, "bandwidth": 0.5, "piece": 0.0, "cuts": 1e18}, []string{"bandwidth", "cuts", "piece", "seed"}},
		"half a stall":    {map[string]any{"stall": "1s"}, []string{"stall"}},
		"nobody":          {map[string]any{"around": "ipx"}, []string{"around"}},
		"inner":           {map[string]any{"settings": []string{"nodelay=false", "port_range=7900-7999"}}, nil},
		"unknown inner":   {map[string]any{"settings": []string{"colour=red"}}, []string{"settings"}},
		"inner not bool":  {map[string]any{"settings": []string{"nodelay=perhaps"}}, []string{"settings"}},
		"inner is judged": {map[string]any{"settings": []string{"port_range=9-1"}}, []string{"port_range"}},
	} {
		var said []string
		tr := chaos.New(chaos.Options{
			Around: []transports.Transport{tcp.New()}, Warn: func(text string) { said = append(said, text) },
		})
		all := transports.Defaults(tr.Schema())
		for name, value := range c.set {
			all[name] = value
		}
		err := tr.Configure(all)
		if got := wrongSettings(err); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v is wrong, want %v (%v)", name, got, c.want, err)
		}
		if (len(said) == 1) != (err == nil) {
			t.Errorf("%s: warnings %q", name, said)
		}
	}
}

func wrongSettings(err error) (names []string) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			names = append(names, wrongSettings(e)...)
		}
	} else if se := new(transports.SettingError); errors.As(err, &se) {
		names = append(names, se.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestEachStartWarns(t *testing.T) {
	var said []string
	tr := chaos.New(chaos.Options{
		Around: []transports.Transport{tcp.New()}, Warn: func(text string) { said = append(said, text) },
	})
	all := transports.Defaults(tr.Schema())
	all["delay"], all["stall"], all["stall_every"] = "2ms", "1s", 1e6
	for range 2 {
		if err := tr.Configure(all); err != nil {
			t.Fatal(err)
		}
	}
	want := "links over tcp are disturbed on purpose (delay=2ms, stall=1s, stall_every=1000000, seed=1): for tests and demonstrations only"
	if len(said) != 2 || said[0] != want || said[1] != want {
		t.Errorf("%q, want twice %q", said, want)
	}
}

// A chaos transport has the capabilities of the one inside, except for descriptors and
// channels, as all bytes must pass it.
func TestCapabilitiesAreThoseInside(t *testing.T) {
	tr := configured(t, map[string]any{"around": "unix"})
	c := tr.Capabilities()
	if c.Reach != transports.ReachMachine || slices.Contains(c.DataPlanes, transports.PlaneFD) || !slices.Contains(c.DataPlanes, transports.PlaneRing) {
		t.Errorf("%+v", c)
	}
	if c := configured(t, nil).Capabilities(); c.Reach != transports.ReachNetwork || c.Has(transports.FeatureIPChannelIfAsked) {
		t.Errorf("%+v", c)
	}
}

// pair makes a link with both ends in this process.
func pair(t *testing.T, tr transports.Transport) (dialled, accepted link.Link) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := tr.Listen(t.Context(), transports.ListenSpec{Host: "127.0.0.1", Dir: dir, Name: "l"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if dialled, err = tr.Dial(t.Context(), transports.DialSpec{Address: ln.Address()}); err != nil {
		t.Fatal(err)
	}
	if accepted, err = ln.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// drain receives until an error and says how much came.
func drain(l link.Link) (n int, err error) {
	buf := make([]byte, 64<<10)
	for {
		m, err := l.Recv([][]byte{buf})
		if n += m; err != nil {
			return n, err
		}
		if m == 0 && !l.Arm(link.Readable) {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: unix.POLLIN}}, -1)
		}
	}
}

// push sends until all is sent or an error.
func push(l link.Link, b []byte) error {
	for len(b) > 0 {
		n, err := l.Send([][]byte{b})
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 && !l.Arm(link.Writable) {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: unix.POLLOUT}}, -1)
		}
	}
	return nil
}

// Both ends of a link that was cut see a failure, never an end of the stream; over a
// Unix socket, which cannot say so, the peer may see an end.
func TestBothEndsSeeTheCut(t *testing.T) {
	for _, around := range []string{"tcp", "shm", "unix"} {
		tr := configured(t, map[string]any{"around": around, "cut_bytes": 1e5, "seed": 9.0})
		a, b := pair(t, tr)
		sent := make(chan error, 1)
		go func() { sent <- push(a, make([]byte, 64<<20)) }()
		n, err := drain(b)
		if !errors.Is(err, link.ErrBroken) && around != "unix" {
			t.Errorf("%s: the receiver sees %v", around, err)
		}
		// A reset overtakes what the kernel still holds, so less may have come.
		if n > 150000 {
			t.Errorf("%s: %d bytes came, though the link was to be cut after 150000 at most", around, n)
		}
		if err := <-sent; !errors.Is(err, link.ErrBroken) {
			t.Errorf("%s: the sender sees %v", around, err)
		}
		if _, err := drain(a); !errors.Is(err, chaos.ErrCut) {
			t.Errorf("%s: the sender's error does not say that the link was cut: %v", around, err)
		}
	}
}

func TestCutsAreCounted(t *testing.T) {
	tr := configured(t, map[string]any{"cut_bytes": 1000.0, "cuts": 1.0})
	for i, broken := range []bool{true, false} {
		a, b := pair(t, tr)
		go func() {
			if push(a, make([]byte, 1<<20)) == nil {
				_ = a.CloseSend()
			}
		}()
		n, err := drain(b)
		if errors.Is(err, link.ErrBroken) != broken || !broken && (err != io.EOF || n != 1<<20) {
			t.Errorf("link %d: %d bytes, %v", i, n, err)
		}
	}
	if s := tr.(*chaos.Transport).Stats(); s["links_cut"] != 1 || s["links_disturbed"] != 4 {
		t.Errorf("%v", s)
	}
}

func TestErrorsNameBoth(t *testing.T) {
	tr := configured(t, nil)
	_, err := tr.Dial(t.Context(), transports.DialSpec{Address: "nonsense"})
	var te *transports.Error
	if !errors.As(err, &te) || te.Transport != "chaos" || !strings.HasPrefix(te.Reason, "tcp: ") {
		t.Errorf("%v", err)
	}
}

// What was sent before Close still goes out, with its delays; a plugin waits for that.
func TestDrainWaitsForClosedLinks(t *testing.T) {
	tr := chaos.New(chaos.Options{Around: []transports.Transport{tcp.New()}})
	all := transports.Defaults(tr.Schema())
	all["delay"] = "50ms"
	if err := tr.Configure(all); err != nil {
		t.Fatal(err)
	}
	a, b := pair(t, tr)
	if err := push(a, []byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := a.CloseSend(); err != nil {
		t.Fatal(err)
	}
	a.Close()
	<-a.(*conn.Link).Done() // the connection is closed, but not done
	if err := tr.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := drain(b); n != len("last words") || err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

func TestNameChoosesTheTransport(t *testing.T) {
	around := []transports.Transport{tcp.New(), unixsocket.New()}
	for name, want := range map[string]string{"": "tcp", "chaos": "tcp", "chaos-unix": "unix", "chaos-tcp": "tcp", "chaos-quic": "quic", "mine": "tcp"} {
		tr := chaos.New(chaos.Options{Name: name, Around: around})
		if got := transports.Defaults(tr.Schema())["around"]; got != want {
			t.Errorf("%q is around %v, want %s", name, got, want)
		}
		if got := tr.Info().Name; got != name && (name != "" || got != "chaos") {
			t.Errorf("%q is called %q", name, got)
		}
		if err := tr.Configure(transports.Defaults(tr.Schema())); (err != nil) != (want == "quic") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The last bytes and the end come together, after an exchange with pauses.
func TestEndRightAfterTheLastBytes(t *testing.T) {
	tr := configured(t, map[string]any{"delay": "200us", "jitter": "50us", "bandwidth": 5e7})
	ended := make(chan error)
	const links = 20
	for range links {
		a, b := pair(t, tr)
		for _, side := range [][2]link.Link{{a, b}, {b, a}} {
			go func() {
				sent := make(chan error, 1)
				go func() {
					for range 30 {
						if err := push(side[0], make([]byte, 168)); err != nil {
							sent <- err
							return
						}
						runtime.Gosched()
					}
					sent <- side[0].CloseSend()
				}()
				n, err := drain(side[1])
				if err != io.EOF || n != 30*168 {
					ended <- fmt.Errorf("%d bytes, %w", n, err)
					return
				}
				ended <- <-sent
			}()
		}
	}
	for range 2 * links {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
