package dynamic

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var errDial = errors.New("no")

// played is a dial plan whose dials have the given answers, one after the other.
type played struct {
	s     *DialPlan
	now   time.Time
	step  DialStep
	dials []int // the ways that were dialled
	slept []time.Duration
}

func play(s *DialPlan) *played {
	p := &played{s: s, now: time.Unix(100, 0)}
	p.step = s.Begin(p.now)
	return p
}

// answer answers the dial that the plan wants, which it may have to wait for.
func (p *played) answer(t *testing.T, a DialResult) {
	t.Helper()
	p.sleep()
	if p.step.Action != DialCandidate {
		t.Fatalf("it wants %+v, not a dial", p.step)
	}
	p.dials = append(p.dials, p.step.Candidate)
	p.now = p.now.Add(time.Millisecond)
	p.step = p.s.Dialled(p.now, a)
}

func (p *played) sleep() {
	for p.step.Action == Pause || p.step.Action == PauseAfterRound {
		p.slept = append(p.slept, p.step.Wait)
		p.now = p.now.Add(p.step.Wait)
		p.step = p.s.Waited(p.now)
	}
}

func lost(f DialFailure) DialResult { return DialResult{Err: errDial, Failure: f} }
func verdict(v Verdict) DialResult  { return DialResult{Err: errDial, Verdict: v} }

func wanting() *PairLinks[int] {
	t := &PairLinks[int]{}
	t.Request(1)
	return t
}

// TestDialPlanTriesCandidatesInOrder: the next candidate is dialled at once, the same one again
// only where the fault passes by itself.
func TestDialPlanTriesCandidatesInOrder(t *testing.T) {
	pairs := wanting()
	p := play(DirectLinkPlan(3, pairs, 1, 0))
	p.answer(t, lost(0))
	for range MaxDials {
		p.answer(t, lost(NotListening))
	}
	p.answer(t, verdict(NotAllowed))
	if !slices.Equal(p.dials, []int{0, 1, 1, 1, 1, 1, 2}) || !slices.Equal(p.slept, retries[:]) {
		t.Errorf("dials %v with pauses %v", p.dials, p.slept)
	}
	if p.step.Action != GiveUp || len(p.s.FailedCandidates()) != 3 || pairs.State(1) != Refused {
		t.Errorf("it ends with %+v, %d ways and phase %v", p.step, len(p.s.FailedCandidates()), pairs.State(1))
	}
}

// TestDialPlanYields: who loses a tie waits for the other link, and dials again if that does not
// come.
func TestDialPlanYields(t *testing.T) {
	pairs := wanting()
	p := play(DirectLinkPlan(2, pairs, 1, 0))
	p.answer(t, verdict(TieLost))
	if p.step.Wait != YieldTime || pairs.State(1) != Yielding {
		t.Fatalf("it does %+v in phase %v", p.step, pairs.State(1))
	}
	p.answer(t, verdict(TieLost))
	if !slices.Equal(p.dials, []int{0, 0}) {
		t.Errorf("it dials %v", p.dials)
	}
	pairs.Arrive(1, true)
	if p.sleep(); p.step.Action != Abandon {
		t.Errorf("the other link is there, and it wants %+v", p.step)
	}

	p = play(DirectLinkPlan(1, wanting(), 1, 0))
	for range MaxYields {
		p.answer(t, verdict(TieLost))
	}
	if p.sleep(); p.step.Action != GiveUp || !p.step.Yielded {
		t.Errorf("after %d waits it wants %+v", MaxYields, p.step)
	}
}

// TestDialPlanIsNotWanted: the other end's link makes further dials needless, and ours of no use.
func TestDialPlanIsNotWanted(t *testing.T) {
	for name, a := range map[string]DialResult{"it fails": lost(0), "it passes": lost(NoRoom), "it is made": {}} {
		pairs := wanting()
		p := play(DirectLinkPlan(2, pairs, 1, 0))
		pairs.Arrive(1, true)
		p.answer(t, a)
		want := Abandon
		if a.Err == nil {
			want = CloseLink
		}
		if p.sleep(); p.step.Action != want || len(p.dials) != 1 {
			t.Errorf("%s: it wants %+v", name, p.step)
		}
	}
}

// TestDialPlanGoesOn: the plan of a pair whose link was lost before use is not joined by a second one,
// whatever it does when it hears of that, and makes the link by itself.
func TestDialPlanGoesOn(t *testing.T) {
	for what, dialled := range map[string]func(p *played, come func()){
		"while it dials":             func(p *played, come func()) { come(); p.answer(t, lost(0)); p.answer(t, DialResult{}) },
		"while it waits to dial":     func(p *played, come func()) { p.answer(t, lost(NoRoom)); come(); p.answer(t, DialResult{}) },
		"while its link is answered": func(p *played, come func()) { come(); p.answer(t, DialResult{}) },
	} {
		var d DirectLinks[int]
		d.Request(1)
		p := play(DirectLinkPlan(2, &d.Pairs, 1, 0))
		dialled(p, func() {
			if v := d.arrive(1, ResumableID{}, true); v != Accepted || d.LostBeforeUse(1) {
				t.Errorf("%s: %v, and a second plan begins", what, v)
			}
		})
		if p.step.Action != KeepLink || d.Pairs.State(1) != Linked {
			t.Errorf("%s: it ends with %+v in phase %v", what, p.step, d.Pairs.State(1))
		}
		if d.Pairs.Drop(1); !d.Request(1) {
			t.Errorf("%s: no plan begins after the last one", what)
		}
	}
}

// TestDialPlanOnlyWaited: a plan that waits for the other end's link ends when that has come. If it is
// lost, another plan begins, which the first one leaves alone.
func TestDialPlanOnlyWaited(t *testing.T) {
	var d DirectLinks[int]
	d.Request(1)
	first := play(DirectLinkPlan(2, &d.Pairs, 1, 0))
	first.answer(t, verdict(TieLost))
	if v := d.arrive(1, ResumableID{}, true); v != Accepted || !d.LostBeforeUse(1) {
		t.Fatalf("%v, and no plan begins", v)
	}
	second := play(DirectLinkPlan(2, &d.Pairs, 1, 0))
	second.answer(t, verdict(TieLost))
	if first.sleep(); first.step.Action != Abandon {
		t.Errorf("the first plan does %+v", first.step)
	}
	d.Pairs.Arrive(1, true)
	d.Pairs.Drop(1)
	if !d.Request(1) || d.Request(1) {
		t.Error("not one plan begins after the second one only waited, too")
	}
}

// TestDialPlanUnsure: a link that broke in its greeting goes on if the peer has it, and begins
// again with the same session if not.
func TestDialPlanUnsure(t *testing.T) {
	p := play(DirectLinkPlan(2, wanting(), 1, time.Second))
	p.answer(t, lost(Uncertain))
	if want := (DialStep{Action: DialCandidate, Resumes: true}); p.step != want {
		t.Fatalf("it wants %+v", p.step)
	}
	p.answer(t, lost(0)) // nobody is heard: it has to be again
	if p.sleep(); !p.step.Resumes || p.step.Fresh {
		t.Fatalf("it wants %+v", p.step)
	}
	p.answer(t, verdict(UnknownLink))
	if want := (DialStep{Action: DialCandidate}); p.step != want {
		t.Fatalf("the peer has no such link, and it wants %+v", p.step)
	}
	p.answer(t, DialResult{})
	if p.step.Action != KeepLink {
		t.Errorf("it ends with %+v", p.step)
	}

	p = play(DirectLinkPlan(2, wanting(), 1, time.Second))
	for p.step.Candidate == 0 && len(p.dials) < 100 {
		p.answer(t, lost(Uncertain))
		p.sleep()
	}
	if spent := p.now.Sub(time.Unix(100, 0)); !p.step.Fresh || spent < time.Second || spent > 2*time.Second {
		t.Errorf("after %v it wants %+v", spent, p.step)
	}
}

// TestDialPlanResumes tries all candidates until the limit, and ends at the peer's word.
func TestDialPlanResumes(t *testing.T) {
	p := play(ResumePlan(2, time.Second))
	for p.step.Action == DialCandidate {
		p.answer(t, lost(NotListening))
		p.sleep()
	}
	if spent := p.now.Sub(time.Unix(100, 0)); p.step.Action != GiveUp || spent < time.Second || spent > time.Second+2*time.Millisecond {
		t.Errorf("after %v it wants %+v", spent, p.step)
	}
	if p.s.Rounds() < 5 || !slices.Equal(p.dials[:4], []int{0, 1, 0, 1}) || p.slept[1] != 2*p.slept[0] {
		t.Errorf("%d rounds, dials %v, pauses %v", p.s.Rounds(), p.dials, p.slept)
	}
	for _, v := range []Verdict{Leaving, UnknownLink, UnknownRank} {
		p := play(ResumePlan(2, time.Second))
		if p.answer(t, verdict(v)); p.step.Action != GiveUp || p.step.Verdict != v {
			t.Errorf("%v: it wants %+v", v, p.step)
		}
	}
	p = play(ResumePlan(2, time.Second))
	if p.answer(t, verdict(NotAllowed)); p.step.Action != DialCandidate || p.step.Candidate != 1 {
		t.Errorf("it wants %+v", p.step)
	}
}

// TestDialPlanOfChannels ends only where no candidate can ever work.
func TestDialPlanOfChannels(t *testing.T) {
	p := play(ChannelPlan(2))
	for range 10 {
		p.answer(t, lost(Impossible))
		p.answer(t, lost(0))
	}
	p.answer(t, lost(Impossible))
	if p.answer(t, lost(Impossible)); p.step.Action != GiveUp {
		t.Errorf("it wants %+v", p.step)
	}
	if last := p.slept[len(p.slept)-1]; last != 2*time.Second {
		t.Errorf("the last pause is %v", last)
	}
}

// TestDialPlanBetweenWorlds: any word of the peer's is the last, but for pairs; and a link that the
// peer has accepted is never closed.
func TestDialPlanBetweenWorlds(t *testing.T) {
	pairs := wanting()
	p := play(WorldLinkPlan(2, pairs, 1, 0))
	p.answer(t, verdict(StillLinked))
	p.answer(t, verdict(StillLinked))
	if !slices.Equal(p.slept, []time.Duration{shortPause}) || !slices.Equal(p.dials, []int{0, 0}) {
		t.Errorf("dials %v, pauses %v", p.dials, p.slept)
	}
	pairs.Arrive(1, true)
	p.step = DialStep{Action: DialCandidate}
	p.answer(t, DialResult{})
	if p.step.Action != Pause {
		t.Fatalf("it wants %+v while the proc has another link", p.step)
	}
	pairs.Drop(1)
	if p.sleep(); p.step.Action != KeepLink || pairs.State(1) != Linked {
		t.Errorf("it wants %+v in phase %v", p.step, pairs.State(1))
	}

	pairs = wanting()
	p = play(WorldLinkPlan(2, pairs, 1, 0))
	if p.answer(t, verdict(NotAllowed)); p.step.Action != GiveUp || pairs.State(1) != Unlinked {
		t.Errorf("it wants %+v in phase %v", p.step, pairs.State(1))
	}
	p = play(ConnectPlan(2))
	if p.answer(t, verdict(TieLost)); p.step.Action != GiveUp || p.step.Verdict != TieLost {
		t.Errorf("a call: it wants %+v", p.step)
	}
}
