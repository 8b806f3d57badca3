package dynamic

import "testing"

func TestDirectLinkArrives(t *testing.T) {
	for _, c := range []struct {
		what   string
		before func(*DirectLinks[int])
		prior  bool
		want   Verdict
	}{
		{"the first", func(*DirectLinks[int]) {}, false, Accepted},
		{"both dial, and the other end's is used", func(d *DirectLinks[int]) { d.Pairs.Request(1) }, true, Accepted},
		{"both dial, and ours is used", func(d *DirectLinks[int]) { d.Pairs.Request(1) }, false, TieLost},
		{"ours is there", func(d *DirectLinks[int]) { d.Pairs.Request(1); d.Pairs.Made(1) }, false, TieLost},
		{"we have given up", func(d *DirectLinks[int]) { d.Pairs.Request(1); d.Pairs.GiveUp(1) }, true, NotAllowed},
		{"after one that broke", func(d *DirectLinks[int]) { d.arrive(1, ResumableID{2}, true); d.LostBeforeUse(1) }, false, Accepted},
	} {
		for _, id := range []ResumableID{{}, {1}} {
			var d DirectLinks[int]
			c.before(&d)
			if got := d.arrive(1, id, c.prior); got != c.want {
				t.Errorf("%s: %v, want %v", c.what, got, c.want)
			}
			s := d.Resumable.Get(1)
			if (s != nil) != (c.want == Accepted && id != ResumableID{}) || s != nil && (s.ID != id || s.Dialled || s.Making) {
				t.Errorf("%s: session %+v", c.what, s)
			}
		}
	}
}

// TestDirectLinkIsLostBeforeUse: who has asked for a link, before or since one was accepted that its
// proc does not get, is not left waiting.
func TestDirectLinkIsLostBeforeUse(t *testing.T) {
	for _, c := range []struct {
		what          string
		before, since func(*DirectLinks[int])
		wants, again  bool
	}{
		{"nobody asks", func(*DirectLinks[int]) {}, func(*DirectLinks[int]) {}, false, false},
		{"it has asked before, and its plan runs", func(d *DirectLinks[int]) { d.Request(1) }, func(*DirectLinks[int]) {}, true, false},
		{"it waits for this link", func(d *DirectLinks[int]) { d.Request(1); d.Pairs.LostTie(1) }, func(*DirectLinks[int]) {}, true, true},
		{"its plan has ended by this link", func(d *DirectLinks[int]) { d.Request(1) }, func(d *DirectLinks[int]) { d.Pairs.Stop(1) }, true, true},
		{"it asks", func(*DirectLinks[int]) {}, func(d *DirectLinks[int]) {
			if d.Request(1) {
				t.Error("it asks: dials although a link is accepted")
			}
		}, true, true},
		{"it asks when it has the link", func(*DirectLinks[int]) {}, func(d *DirectLinks[int]) { d.Given(1); d.Request(1) }, false, false},
	} {
		var d DirectLinks[int]
		c.before(&d)
		if v := d.arrive(1, ResumableID{1}, true); v != Accepted {
			t.Fatalf("%s: %v", c.what, v)
		}
		c.since(&d)
		want := Unlinked
		if c.wants {
			want = Dialling
		}
		if again := d.LostBeforeUse(1); again != c.again || d.Pairs.State(1) != want || d.Resumable.Get(1) != nil {
			t.Errorf("%s: again %v, state %v, session %+v", c.what, again, d.Pairs.State(1), d.Resumable.Get(1))
		}
		if d.LostBeforeUse(1) {
			t.Errorf("%s: it is lost twice", c.what)
		}
	}
}

// TestDirectLinkIsUncertain: until it is made or abandoned, the other end may ask for it.
func TestDirectLinkIsUncertain(t *testing.T) {
	lost := Hello{ResumableID: ResumableID{1}, Lost: true}
	var d DirectLinks[int]
	d.Pairs.Request(1)
	d.Uncertain(1, lost.ResumableID)
	first := d.Resumable.Get(1)
	d.Uncertain(1, lost.ResumableID)
	if v := d.Resumable.CheckResume(1, lost, false); v != Accepted || !first.Making || d.Resumable.Get(1) != first {
		t.Errorf("uncertain: %v, %+v", v, d.Resumable.Get(1))
	}
	d.Pairs.Made(1)
	d.Made(1, lost.ResumableID)
	d.Abandon(1, lost.ResumableID) // has no effect
	if v := d.Resumable.CheckResume(1, lost, false); v != Accepted || d.Resumable.Get(1).Making {
		t.Errorf("made: %v, %+v", v, d.Resumable.Get(1))
	}

	d = DirectLinks[int]{}
	d.Pairs.Request(1)
	d.Uncertain(1, lost.ResumableID)
	d.Abandon(1, ResumableID{3})
	if d.Resumable.Get(1) == nil {
		t.Error("a link is abandoned that is made since")
	}
	d.Abandon(1, lost.ResumableID)
	if v := d.Resumable.CheckResume(1, lost, false); v != UnknownLink {
		t.Errorf("abandoned: %v", v)
	}
	d.Uncertain(1, lost.ResumableID)
	if v := d.arrive(1, ResumableID{2}, true); v != Accepted {
		t.Errorf("the other end's: %v", v)
	}
	d.Abandon(1, lost.ResumableID)
	if s := d.Resumable.Get(1); s == nil || s.ID != (ResumableID{2}) {
		t.Errorf("the other end's is forgotten: %+v", s)
	}
}
