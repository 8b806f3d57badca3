package direct

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

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
		d := twoSites(t)
		d.links.Pairs.Request(Pair{0, 2})
		a := &acceptsAndHangsUp{peer: c.peer}
		s := dial.Dialing{
			DialPlan: dynamic.DirectLinkPlan(1, &d.links.Pairs, Pair{0, 2}, 0), Candidates: []routes.Candidate{{Transport: &routes.Transport{Transport: a, Name: "tcp"}}},
			Dial: func(ctx context.Context, w routes.Candidate, _ dynamic.DialStep) (link.Link, error) {
				return d.Dial(ctx, &dynamic.Hello{Dst: 2}, w)
			},
		}
		_, _, last := s.Run(t.Context())
		if a.dials != c.dials || last.Action != dynamic.GiveUp || errors.Is(s.Errors(), dial.ErrNoRoom) != c.noRoom {
			t.Errorf("%s: %d dials, %v", c.name, a.dials, s.Errors())
		}
	}
}
