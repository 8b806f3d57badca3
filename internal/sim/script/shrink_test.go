package script

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A program that fails because of one thing is left with that thing.
func TestShrinkFindsTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(*Program) bool
		want  string
	}{
		"a long synchronous message": {
			func(p *Program) bool {
				return slices.ContainsFunc(p.Messages, func(m Message) bool {
					return m.Mode == Synchronous && m.Len*m.Kind.Size() > 40 && m.From != m.To && !m.AnySource
				})
			},
			"procs 2\nmessage N N>N comm=w tag=N type=uint8 len=41 mode=synchronous\n",
		},
		"a reduction between three": {
			func(p *Program) bool {
				return p.Procs >= 3 && slices.ContainsFunc(p.Steps, func(s Step) bool {
					c, ok := s.(Collective)
					return ok && c.Call == Allreduce && c.Counts[0] > 2
				})
			},
			"procs 3\nallreduce w id=N type=uint8 op=sum counts=3\n",
		},
		"two wildcard messages": {
			func(p *Program) bool {
				n := 0
				for _, m := range p.Messages {
					if m.AnySource {
						n++
					}
				}
				return n >= 2
			},
			"procs ",
		},
		"a split with three colors": {
			func(p *Program) bool {
				return slices.ContainsFunc(p.Steps, func(s Step) bool { return len(made(s)) == 3 })
			},
			"procs 3\n",
		},
	} {
		found := 0
		for seed := range uint64(40) {
			p := Generate(rand.New(rand.NewPCG(seed, 3)), Options{Procs: 5, DataLen: 32, Steps: 120})
			if !c.fails(p) {
				continue
			}
			found++
			before := p.String()
			calls := 0
			q := Shrink(p, func(q *Program) bool {
				calls++
				if err := Check(q); err != nil {
					t.Fatalf("%s: asked about an illegal program: %v\n%s", name, err, q)
				}
				return c.fails(q)
			})
			if p.String() != before {
				t.Fatalf("%s: the program itself was changed", name)
			}
			text := q.String()
			if !c.fails(q) || !strings.HasPrefix(blank(text), c.want) || len(q.Steps) > 8 || len(q.Messages) > 2 {
				t.Errorf("%s, seed %d, after %d calls:\n%s", name, seed, calls, text)
			}
		}
		if found < 5 {
			t.Errorf("%s: only %d programs fail", name, found)
		}
	}
}

func made(s Step) []string {
	_, names := uses(s)
	return names
}

// blank replaces the numbers that may be any by N.
func blank(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' })
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "tag="):
			words[i] = "tag=N"
		case strings.HasPrefix(w, "id="):
			words[i] = "id=N"
		case strings.Contains(w, ">"):
			words[i] = "N>N"
		case i > 0 && strings.HasSuffix(words[i-1], "message"):
			words[i] = "N"
		}
	}
	return strings.Join(words, " ")
}

func TestShrinkLeavesWhatCannotBeSmaller(t *testing.T) {
	p := legal(t, "procs 1\nbarrier w\n")
	if q := Shrink(p, func(*Program) bool { return true }); len(q.Steps) != 0 || q.Procs != 1 {
		t.Errorf("%s", q)
	}
	if q := Shrink(p, func(q *Program) bool { return len(q.Steps) == 1 }); q != p {
		t.Errorf("%s", q)
	}
}

// Ranks go with what is theirs, whatever the program has.
func TestWithoutRankIsLegal(t *testing.T) {
	legal, all := 0, 0
	programs(t, 120, func(t *testing.T, seed uint64, p *Program) {
		for r := range p.Procs {
			if p.Procs == 1 {
				continue
			}
			q := withoutRank(p, r)
			all++
			if q != nil && Check(q) == nil {
				legal++
			}
		}
	})
	if legal*10 < all {
		t.Errorf("%d of %d programs are still legal without a rank", legal, all)
	}
}
