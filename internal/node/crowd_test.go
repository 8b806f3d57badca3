package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/site"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
	"github.com/openimpi/impi/transports/tcp"
)

// TestIdleCrowdAtADirectListener: connections that do not greet do not keep a proc's
// link out, though they are from the same machine: neither where it arrives, nor where
// it is dialled.
func TestIdleCrowdAtADirectListener(t *testing.T) {
	for _, n := range []int{70, 3000} {
		// Rank 0 of alpha, whose link it is when both dial, dials rank 1 of beta.
		for i, crowded := range []string{"alpha", "beta"} {
			t.Run(fmt.Sprint(n, " at ", crowded), func(t *testing.T) {
				job := route(testJob("ring", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true})
				serveApart(t, job)
				first := startSites(t, job, job.Sites[i:i+1])
				first[0].err.says("listening", 0)
				for _, l := range first[0].n.hosts[0].Direct {
					if l.Transport.Name == "tcp" {
						crowdAt(t, n, l.Address())
					}
				}
				all := append(first, startSites(t, job, job.Sites[1-i:2-i])...)
				wantNone(t, all)
				if log := all[i].err.String(); !strings.Contains(log, "direct link: site=alpha rank=0 peer=1 transport=tcp") {
					t.Errorf("there was no direct link:\n%s", log)
				}
			})
		}
	}
}

// TestCrowdNeedsNoThreads: a connection that does not greet costs its node no thread,
// and all listeners together let in no more of them than one may.
func TestCrowdNeedsNoThreads(t *testing.T) {
	const crowd, stay = 300, 128
	n := twoSites(t)
	n.log = hclog.NewNullLogger()
	ctx, cancel := context.WithCancel(t.Context())
	n.direct = newDirectLinks(ctx, n)
	t.Cleanup(n.direct.wg.Wait)
	t.Cleanup(cancel)
	before := threads(t)
	ended := make(chan struct{}, 2*crowd)
	for range 2 {
		l, err := tcp.New().Listen(ctx, transports.ListenSpec{Host: "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		n.direct.wg.Go(func() { n.direct.serve(&site.Listener{Listener: l, Transport: &routes.Transport{Name: "tcp"}}) })
		for _, c := range crowdAt(t, crowd, l.Address()) {
			go func() {
				_, _ = io.Copy(io.Discard, c)
				ended <- struct{}{}
			}()
		}
	}
	late := time.After(time.Minute)
	for i := range 2*crowd - stay {
		select {
		case <-ended:
		case <-late:
			t.Fatalf("%d of %d connections were sent away, want all but %d", i, 2*crowd, stay)
		}
	}
	if more := threads(t) - before; more > stay/4 {
		t.Errorf("%d connections that wait have %d threads", stay, more)
	}
}

// threads counts those of this process.
func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

// crowdAt makes connections that say nothing until the test is over.
func crowdAt(t *testing.T, n int, address string) (crowd []net.Conn) {
	t.Helper()
	for range n {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		crowd = append(crowd, nc)
	}
	return crowd
}

// acceptsAndHangsUp is a transport whose peers do what peer says with a link, and
// then close it.
type acceptsAndHangsUp struct {
	transports.Transport
	dials int
	peer  func(l link.Link)
}

func (a *acceptsAndHangsUp) Dial(context.Context, transports.DialSpec) (link.Link, error) {
	a.dials++
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	near, err := socket.New(fds[0], nil)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fds[1]))
	}
	far, err := socket.New(fds[1], nil)
	if err != nil {
		return nil, errors.Join(err, near.Close())
	}
	go func() {
		a.peer(far)
		far.Close()
	}()
	return near, nil
}

func (a *acceptsAndHangsUp) Capabilities() transports.Capabilities { return transports.Capabilities{} }

// TestDialAgainWhereThereIsNoRoom: who hangs up before it knows us may have room in a
// moment; who hangs up later may have accepted.
func TestDialAgainWhereThereIsNoRoom(t *testing.T) {
	challenged := func(l link.Link) {
		k, err := dial.NewBlocking(t.Context(), l)
		if err != nil {
			t.Error(err)
			return
		}
		g := dynamic.NewAcceptor(dynamic.KeysOfJob(dynamic.Token{}), dial.Nonce())
		var b [1]byte
		for {
			if k.ReadFull(b[:]) != nil {
				return
			}
			_, _ = g.Input(b[:])
			if out := g.Output(); len(out) > 0 {
				_ = k.WriteAll(out)
				return
			}
		}
	}
	for _, c := range []struct {
		name   string
		peer   func(link.Link)
		dials  int
		noRoom bool
	}{
		{"at once", func(link.Link) {}, dynamic.MaxDials, true},
		{"after the challenge", challenged, 1, false},
	} {
		n := twoSites(t)
		n.direct.ctx = t.Context()
		n.direct.ties.Want(pair{0, 2})
		a := &acceptsAndHangsUp{peer: c.peer}
		s := dial.Search{
			Search: dynamic.DirectSearch(1, &n.direct.ties, pair{0, 2}, 0), Ways: []routes.Way{{T: &routes.Transport{Transport: a, Name: "tcp"}}},
			Dial: func(ctx context.Context, w routes.Way, _ dynamic.SearchStep) (link.Link, error) {
				return n.direct.dialFor(ctx, &dynamic.Hello{Dst: 2}, w)
			},
		}
		_, _, last := s.Run(t.Context())
		if a.dials != c.dials || last.Action != dynamic.GiveUp || errors.Is(s.Errors(), dial.ErrNoRoom) != c.noRoom {
			t.Errorf("%s: %d dials, %v", c.name, a.dials, s.Errors())
		}
	}
}
