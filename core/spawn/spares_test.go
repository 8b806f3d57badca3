package spawn

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var spareStart = time.Unix(1000, 0)

// spareWorld drives Spares as a node does.
type spareWorld struct {
	Spares[int, string]
	t       testing.TB
	open    map[int]string // links that are idle or taken, by site
	granted map[string]int
	refused map[string]string
}

func newSpareWorld(t testing.TB) *spareWorld {
	return &spareWorld{t: t, open: map[int]string{}, granted: map[string]int{}, refused: map[string]string{}}
}

func (w *spareWorld) steps() {
	for {
		s, ok := w.Next()
		switch {
		case !ok:
			return
		case s.Drop != 0:
			if w.open[s.Drop] == "" {
				w.t.Errorf("link %d is dropped, which is not open", s.Drop)
			}
			delete(w.open, s.Drop)
		case s.Link != 0:
			if w.open[s.Link] == "" || w.granted[s.By] != 0 {
				w.t.Errorf("%s is granted link %d, which is not open, or has one", s.By, s.Link)
			}
			w.granted[s.By] = s.Link
		default:
			w.refused[s.By] = s.Reason
		}
	}
}

func (w *spareWorld) offer(now time.Time, o SpareOffer, link int) {
	w.open[link] = o.Site
	if why := w.Offer(now, o, link); why != "" {
		w.t.Error(why)
	}
	w.steps()
}

func (w *spareWorld) state(site string) SpareState {
	for _, x := range w.List() {
		if x.Name == site {
			return x.State
		}
	}
	return ""
}

func TestSpareIsTaken(t *testing.T) {
	w := newSpareWorld(t)
	w.Declare(Site{Name: "delta"})
	if s := w.state("delta"); s != SpareAbsent {
		t.Errorf("it is %s", s)
	}
	w.Ask(spareStart, "early", "delta", time.Minute)
	w.steps()
	w.offer(spareStart, SpareOffer{Site: "delta", Instance: 1}, 10)
	if w.granted["early"] != 10 || w.state("delta") != SpareWaiting {
		t.Errorf("granted %v, state %s", w.granted, w.state("delta"))
	}
	w.Ask(spareStart, "second", "delta", time.Minute) // while the first one has the only link
	w.steps()
	if w.granted["second"] != 0 {
		t.Error("two spawns have one link")
	}
	w.offer(spareStart, SpareOffer{Site: "delta", Instance: 1, Procs: 4}, 11)
	if w.granted["second"] != 11 || w.state("delta") != SpareTaken {
		t.Errorf("granted %v, state %s", w.granted, w.state("delta"))
	}
	w.offer(spareStart, SpareOffer{Site: "delta", Instance: 1, Procs: 4}, 12)
	w.Ended(spareStart, 10, "done")
	w.Ended(spareStart, 11, "done")
	if s := w.state("delta"); s != SpareTaken {
		t.Errorf("it is %s", s)
	}
	w.Ended(spareStart.Add(time.Second), 12, "killed")
	if s := w.List()[0]; s.State != SpareLost || s.Procs != 0 || s.Why != "killed" || !s.Since.Equal(spareStart.Add(time.Second)) {
		t.Errorf("%+v", s)
	}
	w.offer(spareStart, SpareOffer{Site: "delta", Instance: 2}, 13) // it was started again
	if s := w.state("delta"); s != SpareWaiting {
		t.Errorf("it is %s", s)
	}
}

func TestSpareThatDoesNotCome(t *testing.T) {
	w := newSpareWorld(t)
	w.Declare(Site{Name: "delta"})
	w.offer(spareStart, SpareOffer{Site: "eps", Instance: 1}, 1)
	w.Ended(spareStart, 1, "killed")
	w.offer(spareStart, SpareOffer{Site: "silent", Instance: 1}, 2)
	for _, site := range []string{"delta", "eps", "silent", "silent"} {
		w.Ask(spareStart, "by "+site, site, 2*time.Second)
		if site == "silent" && w.granted["by silent"] == 0 {
			w.steps()
			delete(w.granted, "by silent")
		}
	}
	w.Ask(spareStart, "gives up", "delta", time.Second)
	w.Cancel("gives up")
	at, ok := w.Deadline()
	if !ok || !at.Equal(spareStart.Add(2*time.Second)) {
		t.Errorf("deadline %v %t", at, ok)
	}
	w.Tick(at.Add(-1))
	w.steps()
	if len(w.refused) > 0 {
		t.Errorf("too early: %v", w.refused)
	}
	w.Tick(at)
	w.steps()
	for site, says := range map[string]string{
		"delta": "spare site delta has not come within 2s", "eps": "is lost (killed) and has not come back within 2s", "silent": "is there and has answered no further request",
	} {
		if !strings.Contains(w.refused["by "+site], says) {
			t.Errorf("%s: %q, want %q", site, w.refused["by "+site], says)
		}
	}
	if _, ok := w.Deadline(); ok || len(w.refused) != 3 {
		t.Errorf("%v", w.refused)
	}
}

func TestSpareOffersThatAreRefused(t *testing.T) {
	w := newSpareWorld(t)
	for i := range MaxSpares {
		w.offer(spareStart, SpareOffer{Site: "s" + strings.Repeat("x", i), Instance: 1}, i+1)
	}
	for _, o := range []SpareOffer{{Site: "more", Instance: 1}, {Instance: 1}, {Site: "s", Instance: 1, Procs: -1}} {
		if w.Offer(spareStart, o, 1000) == "" {
			t.Errorf("%+v is taken", o)
		}
	}
	w.steps()
	if n := len(w.List()); n != MaxSpares {
		t.Errorf("%d sites", n)
	}
}

// TestSparesModel: whatever happens in which order, a link is granted once, spawns get a link or a
// reason in time, and a site with a link is not lost.
func TestSparesModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newSpareWorld(t)
		w.Declare(Site{Name: "a"})
		now, next, spawns := spareStart, 1, 0
		waits := map[string]time.Time{}
		taken := map[int]bool{}
		sites := rapid.SampledFrom([]string{"a", "b"})
		check := func() {
			w.steps()
			for by, link := range w.granted {
				if taken[link] && waits[by] != (time.Time{}) {
					r.Fatalf("link %d is granted twice", link)
				}
				taken[link] = true
				delete(waits, by)
			}
			for by := range w.refused {
				if at, waited := waits[by]; waited && now.Before(at) {
					r.Fatalf("%s is refused too early", by)
				}
				delete(waits, by)
			}
			for by, at := range waits {
				if d, ok := w.Deadline(); !ok || d.After(at) {
					r.Fatalf("%s waits until %v, and the deadline is %v %t", by, at, d, ok)
				}
			}
			for _, x := range w.List() {
				n := 0
				for _, site := range w.open {
					if site == x.Name {
						n++
					}
				}
				if there := x.State == SpareWaiting || x.State == SpareTaken; there != (n > 0) {
					r.Fatalf("site %s is %s with %d links", x.Name, x.State, n)
				}
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"offer": func(r *rapid.T) {
				o := SpareOffer{Site: sites.Draw(r, "site"), Instance: 1, Procs: rapid.IntRange(0, 2).Draw(r, "procs")}
				w.offer(now, o, next)
				next++
			},
			"again": func(r *rapid.T) { // the node was started again, and all links of the one before have ended
				site := sites.Draw(r, "site")
				for l, s := range w.open {
					if s == site {
						delete(w.open, l)
						w.Ended(now, l, "killed")
					}
				}
			},
			"ask": func(r *rapid.T) {
				spawns++
				by := "spawn " + strings.Repeat("i", spawns)
				waits[by] = now.Add(time.Minute)
				w.Ask(now, by, sites.Draw(r, "site"), time.Minute)
			},
			"end": func(r *rapid.T) {
				for l := range w.open {
					delete(w.open, l)
					w.Ended(now, l, "it ended")
					return
				}
			},
			"time": func(r *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(r, "s")) * time.Second)
				w.Tick(now)
				w.steps()
				for by, at := range waits {
					if w.granted[by] == 0 && !now.Before(at) && w.refused[by] == "" {
						r.Fatalf("%s waits for too long", by)
					}
				}
			},
		})
	})
}

// TestPlanOfSpares: a spare site is taken by its name or that of a host, never without.
func TestPlanOfSpares(t *testing.T) {
	host := func(a, name string) Host {
		return Host{Addresses: []netip.Addr{netip.MustParseAddr(a)}, Names: []string{name}}
	}
	j := &Job{
		Sites:  []Site{{Name: "alpha", Hosts: []Host{host("10.0.0.1", "a1")}}},
		Spares: []Site{{Name: "delta", Hosts: []Host{host("10.0.9.1", "d1"), host("10.0.9.2", "d2")}}, {Name: "eps"}},
	}
	at := func(hosts ...string) (list []Command) {
		for i, h := range hosts {
			list = append(list, Command{Number: i, Path: "p", Procs: 1, Info: map[string]string{"host": h}})
		}
		return list
	}
	parts, r := j.Plan("spawn1", at("", "delta", "delta", "d2", "eps", "alpha"))
	if r != nil {
		t.Fatal(r)
	}
	type place struct {
		spare, host string
		commands    int
	}
	var have []place
	for _, p := range parts {
		if (p.Client == NoClient) != (p.Spare != "") || p.Spare != "" && p.Hosts != nil {
			t.Errorf("%+v", p)
		}
		have = append(have, place{p.Spare, p.Host, len(p.Commands)})
	}
	want := []place{{"", "", 1}, {"delta", "", 2}, {"delta", "10.0.9.2", 1}, {"eps", "", 1}, {"", "", 1}}
	if len(have) != len(want) {
		t.Fatalf("%+v", have)
	}
	for i := range want {
		if have[i] != want[i] {
			t.Errorf("part %d: %+v, want %+v", i, have[i], want[i])
		}
	}
	for _, list := range []string{"delta,eps", "alpha,delta", "d1,d2"} {
		if _, r := j.Plan("w", at(list)); r == nil || !strings.Contains(r.Reason, "several") {
			t.Errorf("%s: %v", list, r)
		}
	}
	if _, r := j.Plan("w", at("zeta")); r == nil || !strings.Contains(r.Reason, "alpha, delta (spare), eps (spare)") {
		t.Errorf("%v", r)
	}
}
