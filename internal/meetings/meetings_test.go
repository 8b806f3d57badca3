package meetings_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/wireup"
)

// proc is a proc with this rank; a connection is a number.
type proc wire.WorldRank

func (p proc) Rank() wire.WorldRank { return wire.WorldRank(p) }

type node = meetings.Node[proc, int, string]

var (
	own, other = dynamic.WorldID{1}, dynamic.WorldID{2}
	now        = time.Unix(1000, 0)
	key        = make([]byte, dynamic.TokenSize)
)

func newNode() *node { return &node{World: own, Able: true} }

func card(t *testing.T) string {
	t.Helper()
	c, err := (&dynamic.BusinessCard{Version: dynamic.CardVersion}).AppendText(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(c)
}

// steps are all that the node has to do.
func steps(n *node) (all []meetings.Step[proc, int]) {
	for s, ok := n.Next(); ok; s, ok = n.Next() {
		all = append(all, s)
	}
	return all
}

// one wants one step, and returns it.
func one(t *testing.T, n *node, want meetings.Action) (s meetings.Step[proc, int]) {
	t.Helper()
	all := steps(n)
	if len(all) != 1 || all[0].Action != want {
		t.Fatalf("steps %+v, want one with action %d", all, want)
	}
	return all[0]
}

// refused wants one answer with a reason and a class.
func refused(t *testing.T, n *node, kind wireup.Kind, class mpierr.Class, reason string) {
	t.Helper()
	m := one(t, n, meetings.Answer).Message
	if m.Kind != kind || m.Meeting.Class != int(class) || !strings.Contains(m.Reason, reason) || reason == "" && m.Reason != "" {
		t.Fatalf("%+v %+v, want %s of class %d: %s", m, m.Meeting, kind, class, reason)
	}
}

func hear(n *node, p proc, kind wireup.Kind, x wireup.OtherWorld) bool {
	return n.HandleMessage(now, p, wireup.Message{Kind: kind, Meeting: &x})
}

func TestPorts(t *testing.T) {
	n, token := newNode(), dynamic.Token(key)
	port := token.World()
	open := wireup.OtherWorld{Request: 1, Key: key}
	hear(n, 3, wireup.KindPort, open)
	refused(t, n, wireup.KindPort, 0, "")
	hear(n, 3, wireup.KindPort, open)
	refused(t, n, wireup.KindPort, mpierr.Port, dynamic.ErrPortOpen.Error())
	hear(n, 3, wireup.KindPort, wireup.OtherWorld{Key: key[1:]})
	if s := one(t, n, meetings.ReportToOperator); !strings.Contains(s.Message.Reason, "wrong size") {
		t.Errorf("%+v", s)
	}
	if v := n.Reserve(port, false); v != dynamic.NotAllowed {
		t.Error(v)
	}
	if v := n.Reserve(port, true); v != dynamic.Accepted || n.Admit(port, 7) {
		t.Error(v)
	}
	hear(n, 3, wireup.KindAccept, wireup.OtherWorld{Request: 2, Key: key})
	if s := one(t, n, meetings.PassConn); s.Conn != 7 || s.Message.Kind != wireup.KindAccepted || s.Message.Meeting.Request != 2 {
		t.Errorf("%+v", s)
	}
	hear(n, 3, wireup.KindAccept, wireup.OtherWorld{Request: 3, Key: key})
	hear(n, 3, wireup.KindAccept, wireup.OtherWorld{Request: 3, Key: key, Cancel: true})
	refused(t, n, wireup.KindAccepted, mpierr.Port, dynamic.ErrAcceptDropped.Error())
	hear(n, 3, wireup.KindAccept, wireup.OtherWorld{Request: 4, Key: key})
	n.Break(3, port, errors.New("they have ended"))
	refused(t, n, wireup.KindAccepted, mpierr.Spawn, "they have ended")
	hear(n, 2, wireup.KindClosePort, wireup.OtherWorld{Key: key})
	if all := steps(n); len(all) > 0 {
		t.Errorf("another proc closes the port: %+v", all)
	}
	hear(n, 3, wireup.KindClosePort, wireup.OtherWorld{Key: key})
	if s := one(t, n, meetings.PortClosed); s.Port != port {
		t.Errorf("%+v", s)
	}
	n.Able = false
	hear(n, 3, wireup.KindPort, open)
	refused(t, n, wireup.KindPort, mpierr.Port, "cannot meet")
}

// TestRequests bounds what a proc has under way, and forgets what has ended.
func TestRequests(t *testing.T) {
	n := newNode()
	call := wireup.OtherWorld{Request: 4, Key: key, Card: card(t), Timeout: time.Minute}
	for range meetings.MaxRequests - 1 {
		hear(n, 0, wireup.KindConnect, call)
		if s := one(t, n, meetings.Connect); s.Request != 4 || s.Limit != time.Minute || s.Token != dynamic.Token(key) {
			t.Fatalf("%+v", s)
		}
	}
	hear(n, 0, wireup.KindLookup, wireup.OtherWorld{Request: 5})
	one(t, n, meetings.AskNames)
	hear(n, 0, wireup.KindConnect, call)
	refused(t, n, wireup.KindConnected, mpierr.Port, "too many calls")
	hear(n, 0, wireup.KindPublish, call)
	refused(t, n, wireup.KindNamed, mpierr.Other, "too many calls")
	if n.Begin(0) || !n.Begin(1) || n.ProcsWithRequests() != 2 {
		t.Error("requests of one proc hinder another, or are not counted")
	}
	n.Ended(1)
	n.Ended(0)
	if !n.Begin(0) || n.ProcsWithRequests() != 1 {
		t.Error("what has ended is not forgotten")
	}
	hear(n, 1, wireup.KindConnect, wireup.OtherWorld{Key: key, Card: "no card"})
	refused(t, n, wireup.KindConnected, mpierr.Port, "card")
	n.Named(0, 5, "", mpierr.Name, errors.New("no such name"))
	refused(t, n, wireup.KindNamed, mpierr.Name, "no such name")
}

func TestLinks(t *testing.T) {
	n := newNode()
	ask := wireup.OtherWorld{World: other[:], Secret: key, Card: card(t)}
	pair := dynamic.WorldPair{Local: dynamic.WorldProc{World: own, Rank: 0}, Peer: dynamic.WorldProc{World: other}}
	hear(n, 0, wireup.KindOpen, ask)
	if s := one(t, n, meetings.Dial); s.Pair != pair {
		t.Errorf("%+v", s)
	}
	for what, change := range map[string]func(*wireup.OtherWorld){
		"own world": func(m *wireup.OtherWorld) { m.World = own[:] }, "no world": func(m *wireup.OtherWorld) { m.World = make([]byte, len(own)) },
		"half a world": func(m *wireup.OtherWorld) { m.World = other[1:] }, "no secret": func(m *wireup.OtherWorld) { m.Secret = nil },
	} {
		t.Run(what, func(t *testing.T) {
			wrong := ask
			change(&wrong)
			hear(n, 0, wireup.KindOpen, wrong)
			refused(t, n, wireup.KindLink, mpierr.Port, "is none")
		})
	}
	x := pair
	x.Local.Rank = 1
	for _, c := range []struct {
		known, allowed bool
		state          ending.ProcState
		world          dynamic.WorldID
		want           dynamic.Verdict
	}{
		{false, true, ending.InMPI, other, dynamic.UnknownRank},
		{true, true, ending.InMPI, own, dynamic.UnknownRank},
		{true, true, ending.Finished, other, dynamic.Leaving},
		{true, false, ending.InMPI, other, dynamic.NotAllowed},
		{true, true, ending.InMPI, other, dynamic.Accepted},
		{true, true, ending.InMPI, other, dynamic.StillLinked},
	} {
		x.Peer.World = c.world
		if v := n.Arrive(x, dynamic.ResumableID{}, meetings.Receiver{Known: c.known, State: c.state, Allowed: c.allowed}); v != c.want {
			t.Errorf("%+v: %v", c, v)
		}
	}
	ended := receives
	ended.Ended = true
	if v := n.Arrive(x, dynamic.ResumableID{}, ended); v != dynamic.Leaving {
		t.Errorf("%v for a proc whose process has ended", v)
	}
	n.SetLink(x, "tcp")
	hear(n, 1, wireup.KindForget, wireup.OtherWorld{World: other[:]})
	if v := n.Arrive(x, dynamic.ResumableID{}, receives); v != dynamic.Accepted {
		t.Errorf("%v after the last one was forgotten", v)
	}
}

// TestLinkThatBreaksWhileItIsLetIn has a proc ask for a link while its node lets one in, which
// breaks: the proc gets another.
func TestLinkThatBreaksWhileItIsLetIn(t *testing.T) {
	n := newNode()
	x := dynamic.WorldPair{Local: dynamic.WorldProc{World: own}, Peer: dynamic.WorldProc{World: other}}
	letIn := func() {
		t.Helper()
		if v := n.Arrive(x, dynamic.ResumableID{}, receives); v != dynamic.Accepted {
			t.Fatal(v)
		}
	}
	letIn()
	hear(n, 0, wireup.KindOpen, wireup.OtherWorld{World: other[:], Secret: key, Card: card(t)})
	if all := steps(n); len(all) > 0 {
		t.Fatalf("there is one already: %+v", all)
	}
	n.AcceptedLinkLost(0, x)
	one(t, n, meetings.Dial)
	n.Links.Pairs.Made(x)
	n.SetLink(x, "tcp")
	n.ProcEnded(0)
	letIn()
	if n.AcceptedLinkLost(0, x); len(steps(n)) > 0 {
		t.Error("nobody has asked for this one")
	}
}

// receives is a proc that takes links.
var receives = meetings.Receiver{Known: true, State: ending.InMPI, Allowed: true}
