package agree

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestGroups lets groups of any size agree again and again, in any order of what happens.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := setup{
			config: Config{Size: rapid.IntRange(1, 40).Draw(t, "size"), Fan: rapid.IntRange(0, 4).Draw(t, "fan"), Window: 4},
			rounds: rapid.IntRange(1, 4).Draw(t, "rounds"), ahead: rapid.IntRange(0, 3).Draw(t, "ahead"), acks: true,
		}
		s.failing = rapid.IntRange(0, s.config.Size).Draw(t, "failing")
		if number := rapid.IntRange(0, 5).Draw(t, "sites"); number > 0 {
			for range s.config.Size {
				s.config.Sites = append(s.config.Sites, rapid.IntRange(1, number).Draw(t, "site"))
			}
		}
		w := newWorld(s)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rare := rapid.IntRange(1, 50).Draw(t, "rare") // how much rarer a failure is than anything else
		for {
			moves, optional := w.moves()
			usual := len(moves) - optional
			if len(moves) == 0 || usual == 0 && random.IntN(2) == 0 {
				break
			}
			i := random.IntN(len(moves))
			if i >= usual && usual > 0 && random.IntN(rare) > 0 {
				i = random.IntN(usual)
			}
			if err := w.do(moves[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.over(); err != nil {
			t.Fatal(err)
		}
		if most := 2 * s.rounds * (s.config.Size - 1); w.failures == 0 && w.sent != most || w.sent > most*(w.failures+1) {
			t.Fatalf("%d messages after %d failures, %d without", w.sent, w.failures, most)
		}
	})
}

// group makes the Members of a group without sites.
func group(t *testing.T, size int) (all []*Member) {
	t.Helper()
	for i := range size {
		m, err := New(Config{Size: size, Me: i, Window: 2})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// settle moves messages until there are none.
func settle(t *testing.T, all []*Member, dead ...int) {
	t.Helper()
	for moved := true; moved; {
		moved = false
		for i, m := range all {
			for out, ok := m.Next(); ok; out, ok = m.Next() {
				moved = true
				if slices.Contains(dead, i) || slices.Contains(dead, out.To) {
					continue
				}
				if err := all[out.To].Receive(i, out.Data); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func begin(t *testing.T, m *Member, c Contribution) {
	t.Helper()
	if _, err := m.Begin(c); err != nil {
		t.Fatal(err)
	}
}

// TestAcknowledged wants a failure to count as acknowledged if all have acknowledged it, and each
// that has happened meanwhile to be there.
func TestAcknowledged(t *testing.T) {
	all := group(t, 5)
	for _, i := range []int{0, 2, 3} {
		if err := all[i].Failed(1); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, all[0], Contribution{Flags: 7, Max: [2]uint64{3, 1}, Acked: SetOf(1)})
	begin(t, all[2], Contribution{Flags: 5, Max: [2]uint64{1, 2}, Acked: SetOf(1)})
	begin(t, all[3], Contribution{Flags: 13, Acked: SetOf(1)})
	settle(t, all, 1, 4)
	for _, i := range []int{0, 2, 3} {
		if d, ok := all[i].Decided(); ok {
			t.Fatalf("member %d has %v without member 4", i, d)
		}
		if err := all[i].Failed(4); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, all, 1, 4)
	want := Decision{Flags: 5, Max: [2]uint64{3, 2}, Failed: SetOf(1, 4), Acked: SetOf(1)}
	for _, i := range []int{0, 2, 3} {
		d, ok := all[i].Decided()
		if !ok || !same(d, want) || !d.Unacked().Equal(SetOf(4)) {
			t.Errorf("member %d has %v, %v, want %v", i, d, ok, want)
		}
		if err := all[i].Failed(1, 4); err != nil {
			t.Error(err)
		}
	}
	begin(t, all[0], Contribution{Acked: SetOf(1, 4)})
	begin(t, all[2], Contribution{Acked: SetOf(1, 4)})
	begin(t, all[3], Contribution{Acked: SetOf(1)})
	settle(t, all, 1, 4)
	if d, ok := all[3].Decided(); !ok || d.Sequence != 1 || d.Unacked().Len() != 1 {
		t.Errorf("%v, %v: one member has not acknowledged the failure of 4", d, ok)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Size: 2, Me: 2}, {Size: 2, Me: -1}, {Size: 2, Sites: []int{1}}, {Size: 2, Fan: -1}, {Size: 2, Window: -1}} {
		if _, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestWrongCalls tries what an engine may not do.
func TestWrongCalls(t *testing.T) {
	m := group(t, 3)[1]
	for name, got := range map[string]struct{ err, want error }{
		"a failed member that is not there": {m.Failed(0, 3), ErrRank},
		"its own failure":                   {m.Failed(1), ErrExcluded},
		"a message of itself":               {m.Receive(1, nil), ErrRank},
		"a message of nobody":               {m.Receive(3, nil), ErrRank},
	} {
		if !errors.Is(got.err, got.want) {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	if m.failed.Len() > 0 {
		t.Errorf("failed are %v", m.failed)
	}
	if _, err := m.Begin(Contribution{Acked: SetOf(0)}); !errors.Is(err, ErrRank) {
		t.Errorf("acknowledged is what has not failed: %v", err)
	}
	for range 2 {
		begin(t, m, Contribution{})
	}
	if _, err := m.Begin(Contribution{}); !errors.Is(err, ErrMany) {
		t.Errorf("a third agreement in a window of two: %v", err)
	}
}

// TestWrongMessages tries what no member sends.
func TestWrongMessages(t *testing.T) {
	mine := Contribution{Flags: 6}
	for name, c := range map[string]struct {
		from    int
		kind    kind
		number  uint64
		value   value
		want    error
		prepare func(m *Member) error
	}{
		"too far ahead":             {from: 3, kind: contribute, number: 3, want: ErrMany},
		"twice":                     {from: 3, kind: contribute, want: ErrTwice, prepare: func(m *Member) error { return m.Receive(3, message{kind: contribute}.append(nil, 5)) }},
		"an answer to nobody":       {from: 3, kind: decide, want: ErrUnasked},
		"an answer too soon":        {from: 0, kind: decide, want: ErrUnasked},
		"a result without this":     {from: 3, kind: recall, value: value{flags: 1}, want: ErrExcluded},
		"a result before it began":  {from: 3, kind: recall, number: 1, want: ErrExcluded},
		"a result with its failure": {from: 3, kind: recall, value: value{failed: SetOf(1)}, want: ErrExcluded},
		"another result":            {from: 3, kind: recall, value: value{flags: 2}, want: ErrDiffers, prepare: func(m *Member) error { return m.Receive(4, message{kind: recall}.append(nil, 5)) }},
		"not a message":             {from: 3, kind: 9, want: ErrMessage},
	} {
		m := group(t, 5)[1]
		begin(t, m, mine)
		if c.prepare != nil {
			if err := c.prepare(m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := m.Receive(c.from, message{c.kind, c.number, c.value}.append(nil, 5)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
