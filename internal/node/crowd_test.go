package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
)

// TestIdleCrowdAtADirectListener: connections that do not greet do not keep a proc's
// link out, though they are from the same machine.
func TestIdleCrowdAtADirectListener(t *testing.T) {
	for _, n := range []int{70, 3000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			job := route(testJob("ring", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true})
			serveApart(t, job)
			beta := startSites(t, job, job.Sites[1:])
			beta[0].err.says("listening", 0)
			for _, l := range beta[0].n.hosts[0].direct {
				if l.t.name == "tcp" {
					crowdAt(t, n, l.Address())
				}
			}
			// Rank 0, whose link it is when both dial, dials rank 1 of beta.
			all := append(startSites(t, job, job.Sites[:1]), beta...)
			wantNone(t, all)
			if log := all[0].err.String(); !strings.Contains(log, "direct link: site=alpha rank=0 peer=1 transport=tcp") {
				t.Errorf("there was no direct link:\n%s", log)
			}
		})
	}
}

// crowdAt makes connections that say nothing until the test is over.
func crowdAt(t *testing.T, n int, address string) {
	t.Helper()
	for range n {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
	}
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
		k, err := newTalk(t.Context(), l)
		if err != nil {
			t.Error(err)
			return
		}
		defer k.close()
		g := dynamic.NewAcceptor(dynamic.KeysOfJob(dynamic.Token{}), nonce())
		var b [1]byte
		for {
			if k.read(b[:]) != nil {
				return
			}
			_, _ = g.Input(b[:])
			if out := g.Output(); len(out) > 0 {
				_ = k.write(out)
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
		{"at once", func(link.Link) {}, 1 + len(retries), true},
		{"after the challenge", challenged, 1, false},
	} {
		n := twoSites(t)
		n.direct.ctx = t.Context()
		n.direct.pairs[pair{0, 2}] = dialling
		a := &acceptsAndHangsUp{peer: c.peer}
		_, _, err := n.direct.dialPatiently(pair{0, 2}, way{t: &transport{Transport: a, name: "tcp"}})
		if a.dials != c.dials || errors.Is(err, errNoRoom) != c.noRoom || !errors.Is(err, errUncertain) {
			t.Errorf("%s: %d dials, %v", c.name, a.dials, err)
		}
	}
}
