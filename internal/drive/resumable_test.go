package drive

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// wired is an end of a link in memory with a handle, of which the set says at all times that it is
// ready.
type wired struct {
	link.Link
	handle int
}

func (w wired) Handle() int { return w.handle }

func (c *couple) wire() (a, b link.Link) {
	a, b = linktest.Pair(1 << 12)
	c.cable = a.(*linktest.End)
	c.cables++
	return wired{a, loud + c.cables}, wired{b, loud + c.cables}
}

func (c *couple) cut() { c.cable.Break(errors.New("cut")) }

func (c *couple) up(want bool) {
	c.t.Helper()
	for i, e := range c.ends {
		if s := e.Status(c.owners[i].now); (s.State == resume.Up) != want {
			c.t.Fatalf("end %d is %v (%v)", i, s.State, s.Err)
		}
	}
}

// The end that dials asks at once for a link below when one is lost; the one that is dialled has
// the other told after a while, and again if that does not help.
func TestLostLinkIsAskedFor(t *testing.T) {
	c := newCouple(t, ResumeRules{ReportsLoss: true, Limit: time.Minute})
	c.up(true)
	c.cut()
	c.pass(20 * time.Millisecond)
	if n := len(c.who[0].asked); n != 1 || c.who[0].whys[0] == nil {
		t.Fatalf("asked %d times: %v", n, c.who[0].whys)
	}
	if n := len(c.who[1].asked); n != 0 {
		t.Fatalf("told %d times at once", n)
	}
	c.pass(tellAfter)
	if n := len(c.who[1].asked); n != 1 || c.who[1].asked[0] == 0 {
		t.Fatalf("told %d times, epochs %v", n, c.who[1].asked)
	}
	c.pass(tellEvery + tendAlways)
	if n := len(c.who[1].asked); n != 2 {
		t.Errorf("told %d times after another %v", n, tellEvery)
	}
	if n := len(c.who[0].asked); n != 1 {
		t.Errorf("asked %d times for one link", n)
	}
	c.connect()
	c.up(true)
	if c.who[0].resumed == 0 || c.who[1].resumed == 0 || c.ends[0].Resumes() != 1 {
		t.Errorf("%d, %d, %d resumes", c.who[0].resumed, c.who[1].resumed, c.ends[0].Resumes())
	}
}

// The HELLO of a first link comes when the owner has gone to sleep, and before the timer has seen
// that there is no link below: the owner must wake and arm it, or it sleeps on what comes by it.
func TestFirstLinkWakesTheSleeper(t *testing.T) {
	c := newEnds(t, ResumeRules{Limit: time.Minute})
	a, b := c.wire()
	c.ends[1].Begin(b)
	x := c.owners[1]
	if !x.d.ArmAll() || x.set.woken {
		t.Fatal("it does not sleep")
	}
	c.ends[0].Begin(a) // says HELLO
	x.pass(tendAnswer)
	if s := c.ends[1].Status(x.now); s.State != resume.Up || c.ends[1].Handle() == link.NoHandle {
		t.Fatalf("it is %v", s.State)
	}
	if !x.set.woken {
		t.Error("it sleeps on, and nobody has armed the link")
	}
}

// Who could not ask asks again; who does not tell never does.
func TestAskingThatFails(t *testing.T) {
	c := newCouple(t, ResumeRules{Limit: time.Minute})
	c.who[0].deaf = true
	c.cut()
	c.pass(2 * tellEvery)
	if n := len(c.who[0].asked); n < 3 {
		t.Errorf("asked %d times", n)
	}
	if n := len(c.who[1].asked); n != 0 {
		t.Errorf("told %d times", n)
	}
}

// A link that nobody resumes is given up after its limit, and by who asks a while later, with the
// reason for which it was lost.
func TestLinkThatIsNotResumed(t *testing.T) {
	c := newCouple(t, ResumeRules{Limit: time.Second})
	if d := c.ends[0].BrokenFor(); d != 0 {
		t.Errorf("lost for %v, though it is not", d)
	}
	c.cut()
	c.pass(time.Second / 2)
	if c.who[0].ended+c.who[1].ended != 0 {
		t.Fatal("given up too soon")
	}
	if d := c.ends[0].BrokenFor(); d <= 0 || d > time.Second/2 {
		t.Errorf("lost for %v", d)
	}
	c.pass(time.Second)
	if c.who[0].ended != 0 || c.who[1].ended != 1 || !errors.Is(c.who[1].err, resume.ErrNotResumed) || !errors.Is(c.who[1].err, link.ErrBroken) && c.ends[1].why == nil {
		t.Fatalf("%d, %d: %v", c.who[0].ended, c.who[1].ended, c.who[1].err)
	}
	c.pass(slack)
	if c.who[0].ended != 1 || !errors.Is(c.who[0].err, resume.ErrNotResumed) || c.owners[0].d.ResumableCount() != 0 {
		t.Errorf("%d: %v", c.who[0].ended, c.who[0].err)
	}
}

// A link that has never been used is given up after a time of its own, if that is longer.
func TestLinkThatIsNotBegun(t *testing.T) {
	c := newEnds(t, ResumeRules{Limit: time.Second, FirstLimit: 10 * time.Second})
	_, b := c.wire()
	c.ends[1].Begin(b) // of which the other end does not know yet
	if got := c.ends[1].Patience(); got != 10*time.Second {
		t.Errorf("who dials is told that there are %v for it", got)
	}
	c.pass(9 * time.Second)
	if c.who[1].ended != 0 {
		t.Fatalf("given up too soon: %v", c.who[1].err)
	}
	c.pass(2 * time.Second)
	if c.who[1].ended != 1 || !errors.Is(c.who[1].err, resume.ErrNotResumed) {
		t.Errorf("%d: %v", c.who[1].ended, c.who[1].err)
	}
	if got := newCouple(t, ResumeRules{Limit: time.Second, FirstLimit: 10 * time.Second}).ends[0].Patience(); got != time.Second {
		t.Errorf("there are %v to replace a link below of one that was used", got)
	}
}

// A closed link stays until the peer has this end's bytes, and its end is progress, of which no
// poll set tells.
func TestLeaving(t *testing.T) {
	c := newCouple(t, ResumeRules{Limit: time.Minute})
	for _, e := range c.ends {
		if err := e.CloseSend(); err != nil {
			t.Fatal(err)
		}
	}
	c.pass(10 * time.Millisecond)
	for i, m := range c.moves {
		if !m.eof || c.who[i].ended != 1 || c.who[i].err != nil || c.owners[i].d.ResumableCount() != 0 {
			t.Errorf("end %d: EOF %v, ended %d: %v", i, m.eof, c.who[i].ended, c.who[i].err)
		}
	}
}

// One that has left and lost its link below waits no longer than ackWait.
func TestLeavingAlone(t *testing.T) {
	c := newCouple(t, ResumeRules{Limit: time.Minute})
	r, d := c.ends[0], c.owners[0].d
	r.ended = true
	_ = r.Close()
	c.cut()
	c.owners[0].pass(2 * tendPending)
	c.owners[0].now = c.owners[0].now.Add(ackWait / 2)
	if d.Mend() || c.who[0].ended != 0 {
		t.Fatal("it has gone too soon")
	}
	c.owners[0].now = c.owners[0].now.Add(ackWait)
	if !d.Mend() || c.who[0].ended != 1 || c.who[0].err != nil {
		t.Errorf("ended %d: %v", c.who[0].ended, c.who[0].err)
	}
	if d.Mend() {
		t.Error("progress for nothing")
	}
}

// One that waits for a peer which says nothing more stays as long as its terms say.
func TestStay(t *testing.T) {
	c := newCouple(t, ResumeRules{Limit: time.Minute, Linger: time.Second})
	r, x := c.ends[0], c.owners[0]
	r.ended = true
	_ = r.Close()
	x.now = x.now.Add(time.Second / 2)
	if x.d.Mend() {
		t.Fatal("it has gone too soon")
	}
	x.now = x.now.Add(time.Second)
	if !x.d.Mend() || c.who[0].ended != 1 {
		t.Error("it stays")
	}
}

// Word of the peer's: that it has lost the link below, of an epoch that is not over; that there
// will be none.
func TestWordOfThePeer(t *testing.T) {
	c := newCouple(t, ResumeRules{Limit: time.Minute})
	epoch := c.ends[0].Status(c.owners[0].now).Epoch
	c.ends[0].PeerLost(epoch - 1)
	c.up(true)
	c.ends[0].PeerLost(epoch)
	c.owners[0].d.Mend()
	if apart, why := c.ends[0].Broken(); !apart || !errors.Is(why, ErrPeerLost) {
		t.Errorf("apart %v: %v", apart, why)
	}
	if c.ends[0].PeerFinished() {
		t.Error("it does not have all of the peer's bytes")
	}
	c.ends[0].GiveUp("it says so")
	if c.owners[0].d.Mend(); !errors.Is(c.who[0].err, resume.ErrNotResumed) || !errors.Is(c.who[0].err, ErrPeerLost) {
		t.Errorf("%v", c.who[0].err)
	}
}

// Links that resume and have something to read, more of them than are polled, replace each other.
func TestManyReadyLinksReplaceEachOther(t *testing.T) {
	x := newLoopOwner(t)
	var all []*couple
	for range hotEndpoints + hotCalls {
		c := &couple{t: t, cables: len(all)}
		peer := newLoopOwner(t)
		c.owners = [2]*loopOwner{x, peer}
		for i, at := range c.owners {
			p := &Endpoint{}
			c.who[i] = &linkOwner{}
			c.ends[i] = at.d.NewResumable(p, resume.ResumableID{9}, 1<<10, ResumeRules{Dialler: i == 0, Limit: time.Minute}, c.who[i])
			p.Link = c.ends[i]
			c.moves[i] = &mover{r: c.ends[i], d: at.d}
			if err := at.d.Add(p, uint32(len(all)), c.moves[i]); err != nil {
				t.Fatal(err)
			}
		}
		a, b := c.wire()
		c.ends[0].Begin(a)
		c.ends[1].Begin(b)
		all = append(all, c)
	}
	turn := func() {
		x.d.ArmAll()
		events, err := x.d.Wait(0)
		if err != nil {
			t.Fatal(err)
		}
		x.d.Handle(events)
		for _, c := range all {
			c.pass(time.Millisecond)
		}
	}
	for range 10 {
		turn()
	}
	for _, c := range all {
		c.up(true)
	}
	for _, c := range all {
		p := c.ends[0].endpoint
		if n, err := c.ends[1].Send([][]byte{{1, 2, 3}}); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		if p.interest != 0 { // as if it had been polled for long
			if err := x.set.Remove(c.ends[0].Handle()); err != nil {
				t.Fatal(err)
			}
			p.interest = 0
		}
	}
	for _, c := range all {
		x.d.MakeHot(c.ends[0].endpoint)
	}
	for _, c := range all {
		if p := c.ends[0].endpoint; p.interest == 0 && !slices.Contains(x.d.hot[:], p) {
			t.Error("a link is neither polled nor in the poll set")
		}
	}
	for range 10 {
		turn()
	}
	for i, c := range all {
		if c.moves[0].got != 3 {
			t.Errorf("link %d has brought %d bytes, not 3", i, c.moves[0].got)
		}
	}
}
