package worlds

import (
	"math/rand/v2"
	"testing"
)

// TestGenerate wants programs that the model allows, in which all meet and part.
func TestGenerate(t *testing.T) {
	kindsSeen := map[Kind]int{}
	for seed := range uint64(300) {
		p := generate(rand.New(rand.NewPCG(seed, 1)), limits)
		m := newModel(p)
		if n := p.Procs(); n < 2 || n > DefaultProcs || len(p.Worlds) < 2 {
			t.Fatalf("seed %d has worlds of %v procs", seed, p.Worlds)
		}
		for i, o := range p.Ops {
			kindsSeen[o.Kind]++
			if err := m.apply(o); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i+1, err)
			}
		}
		for n := range m.alive {
			if !m.fixed(n) {
				t.Fatalf("seed %d: communicator %d stays", seed, n)
			}
		}
	}
	for k := range kinds {
		if kindsSeen[k] == 0 {
			t.Errorf("no program has %v", k)
		}
	}
}

// TestModelRefuses wants operations refused that make no sense.
func TestModelRefuses(t *testing.T) {
	p := &Program{Worlds: []int{2, 1}} // communicators 0 and 1, of each proc 2 to 4
	for name, ops := range map[string][]Op{
		"the same group twice":   {{Kind: Meet, Comm: 0, With: 2, New: []int{5}}},
		"a root that is not":     {{Kind: Meet, Comm: 0, With: 1, Root: 2, New: []int{5}}},
		"a number that is taken": {{Kind: Dup, Comm: 0, New: []int{1}}},
		"merging a world":        {{Kind: Merge, Comm: 0, New: []int{5}}},
		"leaving a world":        {{Kind: Disconnect, Comm: 0}},
		"one that is gone":       {{Kind: Dup, Comm: 0, New: []int{5}}, {Kind: Free, Comm: 5}, {Kind: Sum, Comm: 5}},
		"one under way":          {{Kind: Idup, Comm: 0, New: []int{5}}, {Kind: Sum, Comm: 5}},
		"its parent is needed":   {{Kind: Dup, Comm: 0, New: []int{5}}, {Kind: Idup, Comm: 5, New: []int{6}}, {Kind: Free, Comm: 5}},
		"leaders apart":          {{Kind: Join, Comm: 2, With: 4, Peer: 0, New: []int{5}}},
		"a colour of nobody":     {{Kind: Split, Comm: 0, Colors: []int{0, 0}, Keys: []int{0, 0}, New: []int{5, 6}}},
	} {
		m := newModel(p)
		var err error
		for _, o := range ops {
			if err != nil {
				t.Errorf("%s: %v too early", name, err)
			}
			err = m.apply(o)
		}
		if err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
}
