package membership

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var begin = time.Unix(1000, 0)

func config(t Tree, self int) Config {
	return Config{Tree: t, Self: self, Beat: time.Second, Silence: 5 * time.Second, Deadline: begin.Add(time.Minute)}
}

func member(t testing.TB, tree Tree, self int) *Member {
	t.Helper()
	m, err := New(config(tree, self), begin)
	if err != nil {
		t.Fatal(err)
	}
	m.Join(begin)
	return m
}

// steps returns all steps, except for signs of life.
func steps(m *Member) (list []Step) {
	for s, ok := m.Next(); ok; s, ok = m.Next() {
		if s.Kind != Beat {
			list = append(list, s)
		}
	}
	return list
}

// TestTree: every host but the head is below exactly one, and the way down finds it.
func TestTree(t *testing.T) {
	for _, tree := range []Tree{{1, 32}, {2, 1}, {7, 2}, {33, 32}, {34, 32}, {1024, 32}, {100, 3}} {
		parents := make([]int, tree.Hosts)
		for h := range tree.Hosts {
			first, end := tree.Children(h)
			if end-first > tree.Fan {
				t.Errorf("%v: host %d has %d children", tree, h, end-first)
			}
			for c := first; c < end; c++ {
				parents[c]++
				if tree.Parent(c) != h || tree.Depth(c) != tree.Depth(h)+1 {
					t.Errorf("%v: host %d is below %d, at depth %d", tree, c, tree.Parent(c), tree.Depth(c))
				}
			}
			tree.EachBelow(h, func(to int) {
				if via := tree.ChildToward(h, to); to != h && (via < first || via >= end) {
					t.Errorf("%v: from %d to %d by %d", tree, h, to, via)
				}
			})
		}
		for h, n := range parents {
			if n != min(h, 1) {
				t.Errorf("%v: host %d has %d parents", tree, h, n)
			}
		}
	}
	tree := Tree{7, 2}
	if got := tree.ChildToward(2, 3); got != -1 {
		t.Errorf("3 is not below 2, but by %d", got)
	}
}

// site is a whole site. Messages between different pairs of hosts arrive in any order,
// those of one pair in theirs.
type site struct {
	tree    Tree
	members []*Member
	wire    map[[2]int][]func() error // from, to
	sent    []int                     // messages that a host has sent or got
	whole   []Part
	done    bool
	lost    []string
}

func newSite(t testing.TB, tree Tree) *site {
	s := &site{tree: tree, wire: make(map[[2]int][]func() error), sent: make([]int, tree.Hosts)}
	for h := range tree.Hosts {
		s.members = append(s.members, member(t, tree, h))
	}
	return s
}

func (s *site) send(from, to int, f func() error) {
	s.sent[from]++
	s.sent[to]++
	s.wire[[2]int{from, to}] = append(s.wire[[2]int{from, to}], f)
}

// carry carries out the steps of a host's member.
func (s *site) carry(h int) {
	up := s.tree.Parent(h)
	for _, st := range steps(s.members[h]) {
		switch {
		case st.Kind == Complete:
			s.whole = st.Parts
		case st.Kind == Finished && up < 0:
			s.done = true
		case st.Kind == Lost || st.Kind == Missing:
			s.lost = append(s.lost, fmt.Sprint(h, st.Hosts, st.Err))
		case up < 0:
		case st.Kind == Report:
			s.send(h, up, func() error { return s.members[up].AddParts(h, st.Parts, begin) })
		case st.Kind == Wait:
			s.send(h, up, func() error { return s.members[up].ReportMissing(h, st.Hosts, begin) })
		case st.Kind == Finished:
			s.send(h, up, func() error { return s.members[up].ChildFinished(h, begin) })
		}
	}
}

// TestAnyOrder: whatever the order in which hosts come and messages arrive, the head gets
// all parts once, and hears once that all have finished, never before the last has.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree := Tree{rapid.IntRange(1, 40).Draw(rt, "hosts"), rapid.IntRange(1, 5).Draw(rt, "fan")}
		s := newSite(t, tree)
		coming := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 0)).Perm(tree.Hosts)
		finishing := slices.Clone(coming)
		slices.Reverse(finishing)
		for len(coming) > 0 || len(s.wire) > 0 || len(finishing) > 0 && s.whole != nil {
			var open [][2]int
			for k := range s.wire {
				open = append(open, k)
			}
			slices.SortFunc(open, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
			pick := rapid.IntRange(0, len(open)).Draw(rt, "next")
			switch {
			case pick < len(open):
				k := open[pick]
				f := s.wire[k][0]
				if s.wire[k] = s.wire[k][1:]; len(s.wire[k]) == 0 {
					delete(s.wire, k)
				}
				if err := f(); err != nil {
					rt.Fatalf("%v: %v", k, err)
				}
				s.carry(k[1])
			case len(coming) > 0:
				h := coming[0]
				coming = coming[1:]
				if up := tree.Parent(h); up >= 0 {
					s.send(h, up, func() error { return s.members[up].Attach(h, begin) })
				}
				s.members[h].Submit([]byte{byte(h)}, begin)
				s.carry(h)
			case s.whole != nil && len(finishing) > 0:
				if s.done {
					rt.Fatalf("done while %v have not finished", finishing)
				}
				h := finishing[0]
				finishing = finishing[1:]
				s.members[h].Finish(begin)
				s.carry(h)
			case len(open) == 0:
				rt.Fatalf("stuck: %d parts, done %v", len(s.whole), s.done)
			}
		}
		if len(s.whole) != tree.Hosts || !s.done || len(s.lost) > 0 {
			rt.Fatalf("%d parts, done %v, lost %v", len(s.whole), s.done, s.lost)
		}
		for h, p := range s.whole {
			if p.Host != h || p.Data[0] != byte(h) {
				rt.Fatalf("part %d is %v", h, p)
			}
		}
	})
}

// TestHeadStaysCheap: with 1,024 hosts the head exchanges messages with its 32 children
// only, and no host is more than two steps away.
func TestHeadStaysCheap(t *testing.T) {
	tree := Tree{1024, DefaultFan}
	s := newSite(t, tree)
	for h := range tree.Hosts { // each host is there before those below it
		if up := tree.Parent(h); up >= 0 {
			if err := s.members[up].Attach(h, begin); err != nil {
				t.Fatal(err)
			}
		}
		if tree.Depth(h) > 2 {
			t.Errorf("host %d is %d steps away", h, tree.Depth(h))
		}
		steps(s.members[h])
	}
	for h := tree.Hosts - 1; h >= 0; h-- {
		steps(s.members[h])
		s.members[h].Submit(nil, begin)
		s.carry(h)
		for k, fs := range s.wire {
			for _, f := range fs {
				if err := f(); err != nil {
					t.Fatal(err)
				}
			}
			delete(s.wire, k)
		}
	}
	s.carry(0)
	if len(s.whole) != 1024 || s.sent[0] != DefaultFan {
		t.Errorf("%d parts, %d messages at the head", len(s.whole), s.sent[0])
	}
}

func TestWhoIsMissing(t *testing.T) {
	head := member(t, Tree{7, 2}, 0)
	head.Submit(nil, begin)
	want := func(kind Kind, hosts ...int) {
		t.Helper()
		if got := steps(head); len(got) != 1 || got[0].Kind != kind || !slices.Equal(got[0].Hosts, hosts) {
			t.Fatalf("%+v, not %v of %v", got, hosts, kind)
		}
	}
	want(Wait, 1, 2, 3, 4, 5, 6)
	_ = head.Attach(1, begin)
	want(Wait, 2, 3, 4, 5, 6)
	if err := head.ReportMissing(1, []int{4}, begin); err != nil {
		t.Fatal(err)
	}
	want(Wait, 2, 4, 5, 6)
	_ = head.ReportMissing(1, []int{4}, begin)
	if got := steps(head); len(got) > 0 {
		t.Errorf("nothing has changed, but %v", got)
	}
	if at := head.Deadline(); !at.Equal(begin.Add(time.Second)) {
		t.Errorf("the next sign of life at %v", at)
	}
	for at := begin; at.Before(begin.Add(time.Minute)); at = head.Deadline() {
		head.HeardFrom(1, at)
		head.Tick(at)
		if got := steps(head); len(got) > 0 {
			t.Fatalf("at %v: %+v", at, got)
		}
	}
	head.Tick(begin.Add(time.Minute))
	want(Missing, 2, 4, 5, 6)
	for _, hosts := range [][]int{{1, 1}, {2}, {4, 3}, {9}, {0}} {
		if err := head.ReportMissing(1, hosts, begin); !errors.Is(err, ErrPart) {
			t.Errorf("a list that cannot be, %v: %v", hosts, err)
		}
	}
}

// TestParentHearsWhoIsThere: a parent takes all hosts below a child for missing until the child
// says something else, which it does for hosts that are there and have nothing to report yet.
func TestParentHearsWhoIsThere(t *testing.T) {
	m := member(t, Tree{7, 2}, 1)
	_ = m.Attach(3, begin)
	if got := steps(m); len(got) != 1 || got[0].Kind != Wait || !slices.Equal(got[0].Hosts, []int{4}) {
		t.Errorf("host 4 is missing: %+v", got)
	}
	_ = m.Attach(4, begin)
	if got := steps(m); len(got) != 1 || got[0].Kind != Wait || len(got[0].Hosts) != 0 {
		t.Errorf("nobody is missing: %+v", got)
	}
}

func TestLostHosts(t *testing.T) {
	tree := Tree{7, 2}
	silent := member(t, tree, 1)
	_ = silent.Attach(3, begin)
	steps(silent)
	for at := begin; at.Before(begin.Add(5 * time.Second)); at = silent.Deadline() {
		silent.HeardFrom(0, at)
		silent.Tick(at)
		if got := steps(silent); len(got) > 0 {
			t.Fatalf("at %v: %+v", at, got)
		}
	}
	silent.Tick(begin.Add(5 * time.Second))
	got := steps(silent)
	if len(got) != 1 || got[0].Kind != Lost || got[0].Hosts[0] != 3 || !errors.Is(got[0].Err, ErrSilent) {
		t.Fatalf("%+v", got)
	}

	broken, why := member(t, tree, 1), errors.New("reset")
	broken.Disconnected(0, why, begin)
	broken.Disconnected(0, why, begin)
	if got := steps(broken); len(got) != 1 || got[0].Kind != Lost || got[0].Hosts[0] != 0 || !errors.Is(got[0].Err, why) {
		t.Errorf("%+v", got)
	}

	over := member(t, tree, 0)
	_ = over.Attach(1, begin)
	steps(over)
	over.End()
	over.Disconnected(1, why, begin)
	over.Tick(begin.Add(time.Hour))
	if got := steps(over); len(got) > 0 {
		t.Errorf("after the end: %+v", got)
	}
}

// TestGoesOn: a host that goes on without others reports a child that is lost with all below it,
// does not wait for what they have not finished, and still loses a child later; without its parent
// it cannot go on.
func TestGoesOn(t *testing.T) {
	tree, why := Tree{7, 2}, errors.New("reset")
	m := member(t, tree, 0)
	for child := 1; child <= 2; child++ {
		if err := m.Attach(child, begin); err != nil {
			t.Fatal(err)
		}
	}
	m.SurviveLosses()
	steps(m)
	m.Finish(begin)
	m.Disconnected(1, why, begin)
	m.Disconnected(1, why, begin)
	got := steps(m)
	if len(got) != 1 || got[0].Kind != LostBelow || !slices.Equal(got[0].Hosts, []int{1, 3, 4}) || !errors.Is(got[0].Err, why) {
		t.Fatalf("%+v", got)
	}
	m.Tick(begin.Add(time.Hour))
	got = slices.DeleteFunc(steps(m), func(s Step) bool { return s.Kind == Beat || s.Kind == Missing }) // those below had not come
	if len(got) != 2 || got[0].Kind != LostBelow || !slices.Equal(got[0].Hosts, []int{2, 5, 6}) || !errors.Is(got[0].Err, ErrSilent) || got[1].Kind != Finished {
		t.Errorf("%+v", got)
	}
	if err := m.Attach(1, begin); !errors.Is(err, ErrTwice) {
		t.Errorf("a host that was lost comes again: %v", err)
	}
	child := member(t, tree, 1)
	child.Join(begin)
	child.SurviveLosses()
	steps(child)
	child.Disconnected(0, why, begin)
	if got := steps(child); len(got) != 1 || got[0].Kind != Lost || got[0].Hosts[0] != 0 {
		t.Errorf("without its parent: %+v", got)
	}
	over := member(t, tree, 0)
	_ = over.Attach(1, begin)
	over.SurviveLosses()
	over.Disconnected(1, why, begin)
	over.End()
	if got := slices.DeleteFunc(steps(over), func(s Step) bool { return s.Kind == Wait }); len(got) > 0 {
		t.Errorf("after the end: %+v", got)
	}
}

// TestBeats: every neighbour that is there gets a sign of life in time.
func TestBeats(t *testing.T) {
	m := member(t, Tree{7, 2}, 1)
	_ = m.Attach(4, begin)
	steps(m)
	m.Tick(begin.Add(999 * time.Millisecond))
	if s, ok := m.Next(); ok {
		t.Fatalf("too early: %+v", s)
	}
	m.Tick(m.Deadline())
	if s, ok := m.Next(); !ok || s.Kind != Beat || !slices.Equal(s.Hosts, []int{0, 4}) {
		t.Fatalf("%+v %v", s, ok)
	}
}

// TestBeforeJoining: a parent that has not accepted this host yet cannot be lost, and is
// sent nothing.
func TestBeforeJoining(t *testing.T) {
	m, err := New(config(Tree{7, 2}, 3), begin)
	if err != nil {
		t.Fatal(err)
	}
	m.Tick(begin.Add(time.Hour))
	m.Disconnected(1, ErrSilent, begin.Add(time.Hour))
	if s, ok := m.Next(); ok {
		t.Fatalf("%+v", s)
	}
	m.Join(begin.Add(time.Hour))
	m.Tick(begin.Add(time.Hour + 4*time.Second))
	if s, ok := m.Next(); !ok || s.Kind != Beat || !slices.Equal(s.Hosts, []int{1}) {
		t.Fatalf("%+v %v", s, ok)
	}
	m.Tick(begin.Add(time.Hour + 5*time.Second))
	if got := steps(m); len(got) != 1 || got[0].Kind != Lost {
		t.Fatalf("%+v", got)
	}
}

func TestStrangers(t *testing.T) {
	m := member(t, Tree{7, 2}, 1)
	for _, who := range []int{0, 1, 2, 5, 6, 7, -1} {
		if err := m.Attach(who, begin); !errors.Is(err, ErrUnknownHost) {
			t.Errorf("host %d connects here: %v", who, err)
		}
		if err := m.AddParts(who, nil, begin); !errors.Is(err, ErrUnknownHost) {
			t.Errorf("host %d reports here: %v", who, err)
		}
		if err := m.ChildFinished(who, begin); !errors.Is(err, ErrUnknownHost) {
			t.Errorf("host %d finishes here: %v", who, err)
		}
	}
	if err := m.AddParts(3, []Part{{3, nil}}, begin); !errors.Is(err, ErrPart) {
		t.Errorf("a report of who is not there: %v", err)
	}
	if err := errors.Join(m.Attach(3, begin), m.Attach(4, begin)); err != nil {
		t.Fatal(err)
	}
	if err := m.Attach(3, begin); !errors.Is(err, ErrTwice) {
		t.Errorf("twice: %v", err)
	}
	for _, parts := range [][]Part{nil, {{4, nil}}, {{3, nil}, {3, nil}}, {{99, nil}}} {
		if err := m.AddParts(3, parts, begin); !errors.Is(err, ErrPart) {
			t.Errorf("parts %v: %v", parts, err)
		}
	}
	if err := m.AddParts(3, []Part{{3, nil}}, begin); err != nil {
		t.Fatal(err)
	}
	if err := m.AddParts(3, []Part{{3, nil}}, begin); !errors.Is(err, ErrPart) {
		t.Errorf("reported twice: %v", err)
	}
	for _, bad := range []Config{{}, {Tree: Tree{2, 1}, Self: 2, Beat: 1, Silence: 2}, {Tree: Tree{2, 1}, Beat: 2, Silence: 2}} {
		if _, err := New(bad, begin); err == nil {
			t.Errorf("%+v goes", bad)
		}
	}
}
