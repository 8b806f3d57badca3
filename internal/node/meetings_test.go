package node

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/meet"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

var portKey = []byte("a key of thirty-two bytes, or so")

// openPort has a visitor open a port and waits until callers can come.
func (v *visitor) openPort(backlog int) {
	v.t.Helper()
	v.say(wireup.Message{Kind: wireup.KindPort, Meeting: &wireup.OtherWorld{Request: 1, Key: portKey, Backlog: backlog}})
	if h := v.hear(); h.Kind != wireup.KindPort || h.Reason != "" || h.Meeting.Request != 1 {
		v.t.Fatalf("%+v", h)
	}
}

func (v *visitor) call(to *visitor, request uint64) {
	v.say(wireup.Message{Kind: wireup.KindConnect, Meeting: &wireup.OtherWorld{Request: request, Key: portKey, Card: to.card}})
}

func (v *visitor) take(request uint64) {
	v.say(wireup.Message{Kind: wireup.KindAccept, Meeting: &wireup.OtherWorld{Request: request, Key: portKey}})
}

// meets has a visitor ask for a link to rank 0 of another's world.
func (v *visitor) meets(to *visitor) {
	v.say(wireup.Message{Kind: wireup.KindOpen, Peer: 0, Meeting: &wireup.OtherWorld{
		World: to.world.World[:], Secret: to.world.Secret[:], Card: to.card,
	}})
}

// wants wants an answer of that kind with a link by which text came, or by memory.
func (v *visitor) wants(kind wireup.Kind, request uint64, text string) heardByVisitor {
	v.t.Helper()
	h := v.hear()
	if h.Kind != kind || h.Meeting == nil || h.Meeting.Request != request || h.FDs == 0 || h.DataPlane == "fd" && h.Said != text {
		v.t.Fatalf("heard %+v %+v, want %s %d with %q", h, h.Meeting, kind, request, text)
	}
	return h
}

// wantsNo wants an answer of that kind with a reason.
func (v *visitor) wantsNo(kind wireup.Kind, request uint64, class mpierr.Class, reason string) {
	v.t.Helper()
	h := v.hear()
	if h.Kind != kind || h.Meeting == nil || h.Meeting.Request != request || h.FDs != 0 || h.Meeting.Class != int(class) || !strings.Contains(h.Reason, reason) {
		v.t.Fatalf("heard %+v %+v, want %s %d: %s", h, h.Meeting, kind, request, reason)
	}
}

// TestWorldsMeet goes through a meeting by each transport: a call that waits for its
// taker, a taker that waits for a call, and a link that both open at once.
func TestWorldsMeet(t *testing.T) {
	for _, name := range []string{"tcp", "unix", "shm"} {
		t.Run(name, func(t *testing.T) {
			only := func(j *config.Job) {
				for _, x := range []string{"shm"} {
					j.Sites[0].Transports = append(j.Sites[0].Transports, config.Transport{Name: x, Builtin: true})
				}
				route(j, config.Route{Prefer: []string{name}, Direct: true})
			}
			a, b := startVisitor(t, "alfa", only), startVisitor(t, "beta", only)
			if a.world.World == b.world.World || a.world.Size() != 1 {
				t.Fatalf("worlds %v and %v of %d", a.world.World, b.world.World, a.world.Size())
			}
			a.openPort(0)
			a.take(7)
			b.call(a, 8)
			a.wants(wireup.KindAccepted, 7, "beta")
			b.wants(wireup.KindConnected, 8, "alfa")
			a.meets(b)
			b.meets(a)
			for _, v := range []struct {
				at, from *visitor
				tag      string
			}{{a, b, "beta"}, {b, a, "alfa"}} {
				h := v.at.wants(wireup.KindLink, 0, v.tag)
				if h.Transport != name || h.Peer != wire.WorldRank(0) || string(h.Meeting.World) != string(v.from.world.World[:]) {
					t.Errorf("%+v %+v", h, h.Meeting)
				}
			}
		})
	}
}

// TestWorldsMeetEncrypted has worlds that trust one authority meet by QUIC, and by
// TCP with TLS, where the route to anybody wants links to be encrypted.
func TestWorldsMeetEncrypted(t *testing.T) {
	for _, name := range []string{"quic", "tcp"} {
		t.Run(name, func(t *testing.T) {
			ca := pkitest.Authority(t)
			only := func(j *config.Job) {
				more := map[string]map[string]any{"tcp": {"tls": true}}[name]
				withTransport(j, name, func(site string) map[string]any { return pkitest.Site(t, site, ca, ca, more) })
				route(j, config.Route{Prefer: []string{name}, Direct: true, RequireTLS: true})
			}
			a, b := startVisitor(t, "alfa", only), startVisitor(t, "beta", only)
			a.openPort(0)
			b.call(a, 8)
			b.wants(wireup.KindConnected, 8, "alfa")
			a.take(7)
			a.wants(wireup.KindAccepted, 7, "beta")
			b.meets(a)
			a.wants(wireup.KindLink, 0, "beta")
			b.wants(wireup.KindLink, 0, "alfa")
		})
	}
}

// TestWorldsWithoutAWay has worlds call each other whose routes name different transports.
func TestWorldsWithoutAWay(t *testing.T) {
	a := startVisitor(t, "alfa", func(j *config.Job) { route(j, config.Route{Prefer: []string{"unix"}, Direct: true}) })
	b := startVisitor(t, "beta", func(j *config.Job) { route(j, config.Route{Prefer: []string{"tcp"}, Direct: true}) })
	a.openPort(0)
	b.call(a, 1)
	b.wantsNo(wireup.KindConnected, 1, mpierr.Port, "not allowed by the routes") // a listens by tcp for its channels
	a.call(b, 2)
	a.wantsNo(wireup.KindConnected, 2, mpierr.Port, "no transport is common to both worlds")
}

func TestCallersWaitAndAreRefused(t *testing.T) {
	a, b := startVisitor(t, "alfa"), startVisitor(t, "beta")
	b.call(a, 1)
	b.wantsNo(wireup.KindConnected, 1, mpierr.Port, "the port is closed")
	a.take(2)
	a.wantsNo(wireup.KindAccepted, 2, mpierr.Port, "not open")
	a.openPort(1)
	a.take(3)
	a.say(wireup.Message{Kind: wireup.KindAccept, Meeting: &wireup.OtherWorld{Request: 3, Key: portKey, Cancel: true}})
	a.wantsNo(wireup.KindAccepted, 3, mpierr.Port, "given up")
	a.take(4)
	a.say(wireup.Message{Kind: wireup.KindClosePort, Meeting: &wireup.OtherWorld{Key: portKey}})
	a.wantsNo(wireup.KindAccepted, 4, mpierr.Port, "closed")
	b.call(a, 5)
	b.wantsNo(wireup.KindConnected, 5, mpierr.Port, "the port is closed")
	a.openPort(1)
	a.say(wireup.Message{Kind: wireup.KindPort, Meeting: &wireup.OtherWorld{Request: 6, Key: portKey}})
	a.wantsNo(wireup.KindPort, 6, mpierr.Port, "open already")
}

// TestLinkAgain has a link made anew after both ends have closed it.
func TestLinkAgain(t *testing.T) {
	a, b := startVisitor(t, "alfa"), startVisitor(t, "beta")
	for range 3 {
		a.meets(b)
		a.wants(wireup.KindLink, 0, "beta")
		b.wants(wireup.KindLink, 0, "alfa")
		a.say(wireup.Message{Kind: wireup.KindForget, Meeting: &wireup.OtherWorld{World: b.world.World[:]}})
		b.say(wireup.Message{Kind: wireup.KindForget, Meeting: &wireup.OtherWorld{World: a.world.World[:]}})
	}
}

// TestLinkWaitsForTheLastOne has a proc ask for a link while the other one's node does
// not know yet that the last one is closed: it comes as soon as that does.
func TestLinkWaitsForTheLastOne(t *testing.T) {
	a, b := startVisitor(t, "alfa"), startVisitor(t, "beta")
	forget := func(v, other *visitor) {
		v.say(wireup.Message{Kind: wireup.KindForget, Meeting: &wireup.OtherWorld{World: other.world.World[:]}})
	}
	for range 3 {
		a.meets(b)
		a.wants(wireup.KindLink, 0, "beta")
		b.wants(wireup.KindLink, 0, "alfa")
		forget(a, b)
		before := strings.Count(a.r.err.String(), dynamic.StillLinked.String())
		a.meets(b)
		if !a.r.err.Await(dynamic.StillLinked.String(), before+1) {
			t.Fatal("the link was not refused")
		}
		forget(b, a)
		a.wants(wireup.KindLink, 0, "beta")
		b.wants(wireup.KindLink, 0, "alfa")
		forget(a, b)
		forget(b, a)
	}
}

// TestLinkBeforeTheLastOneIsForgotten has a link accepted, by a node whose proc has closed
// the last one, before the dialling node hears that its proc has closed it as well.
// The new link is the one that both procs have then.
func TestLinkBeforeTheLastOneIsForgotten(t *testing.T) {
	a, b := startVisitor(t, "alfa"), startVisitor(t, "beta")
	a.meets(b)
	a.wants(wireup.KindLink, 0, "beta")
	b.wants(wireup.KindLink, 0, "alfa")
	b.say(wireup.Message{Kind: wireup.KindForget, Meeting: &wireup.OtherWorld{World: a.world.World[:]}})
	a.world.Secret[0] ^= 1
	b.meets(a) // and is answered: its node has heard the other message
	b.wantsNo(wireup.KindLink, 0, mpierr.Port, "wrong job")
	a.world.Secret[0] ^= 1

	m := a.r.n.meetings
	pair := dynamic.WorldPair{Local: dynamic.WorldProc{World: a.world.World}, Peer: dynamic.WorldProc{World: b.world.World}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.DialLink(a.r.n.procs.OfRank(0), pair, &meet.Peer{
			Hello: dynamic.Hello{World: a.world.World}, Token: b.world.Secret, Card: b.world.Groups[0].Card,
		})
	}()
	a.r.err.Await("link to another world waits", 1)
	a.say(wireup.Message{Kind: wireup.KindForget, Meeting: &wireup.OtherWorld{World: b.world.World[:]}})
	a.wants(wireup.KindLink, 0, "beta")
	b.wants(wireup.KindLink, 0, "alfa")
	<-done
}

// TestNoLinkWithoutTheSecret has a wish fail that does not have the world's secret.
func TestNoLinkWithoutTheSecret(t *testing.T) {
	a, b := startVisitor(t, "alfa"), startVisitor(t, "beta")
	b.world.Secret[0] ^= 1
	a.meets(b)
	a.wantsNo(wireup.KindLink, 0, mpierr.Port, "wrong job")
	b.world.Secret[0] ^= 1
	a.meets(b)
	a.wants(wireup.KindLink, 0, "beta")
}
