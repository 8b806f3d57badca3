package meetings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/wireup"
)

var (
	session = dynamic.ResumableID{7}
	away    = dynamic.WorldPair{Local: dynamic.WorldProc{World: own}, Peer: dynamic.WorldProc{World: other}}
)

const limit = 3 * time.Second

// resuming is a node whose links to other worlds resume.
func resuming() *node {
	return &node{World: own, Able: true, Resume: func() time.Duration { return limit }}
}

// wants is what a proc says of its link to another world.
func wants(t *testing.T, features ...string) wireup.OtherWorld {
	t.Helper()
	c, err := (&dynamic.BusinessCard{Version: dynamic.CardVersion, Features: features}).AppendText(nil)
	if err != nil {
		t.Fatal(err)
	}
	return wireup.OtherWorld{World: other[:], Secret: key, Card: string(c)}
}

// tells has a proc say something of its link.
func tells(t *testing.T, n *node, r wireup.Resumable) {
	t.Helper()
	x := wants(t)
	if r.Session == nil {
		r.Session = session[:]
	}
	n.HandleMessage(now, 0, wireup.Message{Kind: wireup.KindOpen, Meeting: &x, Resumable: &r, Reason: "a cable"})
}

// TestWhoResumes: a link has a session if both ends want it, and is no question.
func TestWhoResumes(t *testing.T) {
	for what, c := range map[string]struct {
		n        *node
		features []string
		asks     bool
		want     time.Duration
	}{
		"both":               {resuming(), []string{dynamic.ResumeWorldsFeature}, false, limit},
		"a question":         {resuming(), []string{dynamic.ResumeWorldsFeature}, true, 0},
		"the other does not": {resuming(), nil, false, 0},
		"inside a job alone": {resuming(), []string{"resume"}, false, 0},
		"this one does not":  {newNode(), []string{dynamic.ResumeWorldsFeature}, false, 0},
		"its route does not": {&node{World: own, Able: true, Resume: func() time.Duration { return 0 }}, []string{dynamic.ResumeWorldsFeature}, false, 0},
	} {
		x := wants(t, c.features...)
		x.LifeCheck = c.asks
		hear(c.n, 0, wireup.KindOpen, x)
		if s := one(t, c.n, meetings.Dial); s.Limit != c.want {
			t.Errorf("%s: %v, want %v", what, s.Limit, c.want)
		}
	}
	if v := newNode().Arrive(away, session, receives); v != dynamic.NotAllowed {
		t.Errorf("a node whose links do not resume says %v to a session", v)
	}
}

// TestLinkIsRepaired: the node of the end that was dialled tells the other one, until its proc has
// closed the link; then it says at once that there is no such link.
func TestLinkIsRepaired(t *testing.T) {
	n := resuming()
	tells(t, n, wireup.Resumable{Again: true, Over: true})
	if all := steps(n); len(all) > 0 {
		t.Errorf("of a link that nobody has: %+v", all)
	}
	if v := n.Arrive(away, session, receives); v != dynamic.Accepted {
		t.Fatal(v)
	}
	n.SetLink(away, "tcp")
	tells(t, n, wireup.Resumable{Again: true, Epoch: 4})
	s := one(t, n, meetings.RepairLink)
	if s.Repair != dynamic.TellPeer || s.Epoch != 4 || s.Pair != away || s.Token != dynamic.Token(key) || s.Link.ID != session {
		t.Fatalf("%+v", s)
	}
	if _, v, tell := n.ArriveAgain(now, away, dynamic.Hello{ResumableID: session, Resumes: true}, receives); v != dynamic.Accepted || tell != nil {
		t.Errorf("a further connection: %v, %+v", v, tell)
	}
	if m := n.Further(away, s.Link); m.Kind != wireup.KindLink || !m.Resumable.Again || m.Meeting == nil || s.Link.Resumes != 1 {
		t.Errorf("%+v %+v", m, m.Resumable)
	}
	tells(t, n, wireup.Resumable{Again: true, Epoch: 5}) // during the repair
	n.Repaired(s, true, dynamic.Accepted, "")
	if s = one(t, n, meetings.RepairLink); s.Repair != dynamic.TellPeer || s.Epoch != 5 || s.Token != dynamic.Token(key) {
		t.Fatalf("then %+v", s)
	}
	hear(n, 0, wireup.KindForget, wireup.OtherWorld{World: other[:]})
	n.Repaired(s, false, dynamic.Accepted, "")
	if m := one(t, n, meetings.Answer).Message; !strings.Contains(m.Reason, "forgotten") || m.Resumable == nil || !m.Resumable.Again {
		t.Errorf("a repair of a link that was closed meanwhile: %+v", m)
	}
	tells(t, n, wireup.Resumable{Again: true, Epoch: 6})
	if m := one(t, n, meetings.Answer).Message; !strings.Contains(m.Reason, "forgotten") || m.Resumable.Over || string(m.Resumable.Session) != string(session[:]) {
		t.Errorf("a link that was closed: %+v", m)
	}
	if _, v, _ := n.ArriveAgain(now, away, dynamic.Hello{ResumableID: session, Resumes: true}, receives); v != dynamic.UnknownLink {
		t.Errorf("its other end hears %v", v)
	}
}

// TestDiallerRepairs: the node that has made a link dials again, and says what has come of it.
func TestDiallerRepairs(t *testing.T) {
	n := resuming()
	n.Links.Ask(away, &wireup.OtherWorld{})
	n.Links.Pairs.Made(away)
	n.Links.Made(away, session)
	for _, c := range []struct {
		v          dynamic.Verdict
		why        string
		over, told bool
	}{
		{dynamic.Leaving, "it has left", true, true}, {dynamic.UnknownLink, "no such link", false, true}, {dynamic.Accepted, "it is not there", false, true},
	} {
		_, v, tell := n.ArriveAgain(now, away, dynamic.Hello{ResumableID: session, Lost: true, Epoch: 3}, receives)
		if v != dynamic.Accepted || tell == nil || !tell.Resumable.Lost || tell.Resumable.Epoch != 3 {
			t.Errorf("the other end says that it is lost: %v, %+v", v, tell)
		}
		tells(t, n, wireup.Resumable{Again: true, Epoch: 3})
		s := one(t, n, meetings.RepairLink)
		if s.Repair != dynamic.Redial {
			t.Fatalf("%+v", s)
		}
		n.Repaired(s, false, c.v, c.why)
		if m := one(t, n, meetings.Answer).Message; m.Reason != c.why || m.Resumable.Over != c.over {
			t.Errorf("%v: %+v %+v", c.v, m, m.Resumable)
		}
	}
	finished := receives
	finished.State = ending.Finished
	if _, v, _ := n.ArriveAgain(now, away, dynamic.Hello{ResumableID: session, Lost: true}, finished); v != dynamic.Leaving {
		t.Errorf("of a proc that has finished: %v", v)
	}
	x := away
	x.Peer.World = own
	if _, v, _ := n.ArriveAgain(now, x, dynamic.Hello{ResumableID: session, Lost: true}, receives); v != dynamic.UnknownRank {
		t.Errorf("from this world: %v", v)
	}
	tells(t, n, wireup.Resumable{Again: true, Over: true})
	if _, v, _ := n.ArriveAgain(now, away, dynamic.Hello{ResumableID: session, Lost: true}, receives); v != dynamic.UnknownLink || len(steps(n)) > 0 {
		t.Errorf("after the proc has given it up: %v", v)
	}
}
