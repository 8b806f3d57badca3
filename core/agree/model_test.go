package agree

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/openimpi/impi/internal/soak"
)

// models are the groups of which TestModel visits all states.
var models = []struct {
	name  string
	setup setup
	soak  bool
}{
	{name: "one", setup: setup{config: Config{Size: 1}, rounds: 3}},
	{name: "two", setup: setup{config: Config{Size: 2}, rounds: 2, ahead: 1, failing: 1}},
	{name: "three, two fail", setup: setup{config: Config{Size: 3}, rounds: 1, failing: 2, acks: true}},
	{name: "three in a chain, two fail", setup: setup{config: Config{Size: 3, Fan: 1}, rounds: 1, failing: 2, acks: true}},
	{name: "three at two sites, two fail", setup: setup{config: Config{Size: 3, Sites: []int{7, 5, 5}}, rounds: 1, failing: 2}},
	{name: "three, two agreements, one fails", setup: setup{config: Config{Size: 3, Fan: 1}, rounds: 2, failing: 1}},
	{name: "three, two agreements at a time, one fails", setup: setup{config: Config{Size: 3}, rounds: 2, ahead: 1, failing: 1}},
	{name: "four, one fails", setup: setup{config: Config{Size: 4}, rounds: 1, failing: 1}},
	{name: "four in a chain, two fail", setup: setup{config: Config{Size: 4, Fan: 1}, rounds: 1, failing: 2}},
	{name: "four at two sites, two fail", setup: setup{config: Config{Size: 4, Sites: []int{0, 0, 1, 1}}, rounds: 1, failing: 2}},
	{name: "five at two sites, the leaders fail", setup: setup{config: Config{Size: 5, Sites: []int{0, 0, 1, 1, 1}}, rounds: 1, failing: 2, victims: []int{0, 2}}},
	{name: "three, two agreements, two fail", setup: setup{config: Config{Size: 3, Fan: 1}, rounds: 2, failing: 2}},
	{name: "three, two agreements at a time, two fail", setup: setup{config: Config{Size: 3, Fan: 1}, rounds: 2, ahead: 1, failing: 2}, soak: true},
	{name: "four, three fail", setup: setup{config: Config{Size: 4}, rounds: 1, failing: 3}, soak: true},
	{name: "four in a chain, three fail", setup: setup{config: Config{Size: 4, Fan: 1}, rounds: 1, failing: 3}, soak: true},
	{name: "four at two sites, three fail", setup: setup{config: Config{Size: 4, Sites: []int{0, 1, 1, 0}}, rounds: 1, failing: 3}, soak: true},
	{name: "four in a chain, two agreements, two fail", setup: setup{config: Config{Size: 4, Fan: 1}, rounds: 2, failing: 2}, soak: true},
	{name: "five, two fail", setup: setup{config: Config{Size: 5}, rounds: 1, failing: 2}, soak: true},
	{name: "five at two sites, three fail", setup: setup{config: Config{Size: 5, Sites: []int{0, 1, 1, 0, 1}}, rounds: 1, failing: 3}, soak: true},
}

// TestModel visits all states that a group can come to: each order in which members begin, fail,
// learn of failures and get messages. In each it checks what [world.do] does, and in those after
// which nothing happens any more that all that live have their results. No state follows itself,
// as each move uses up something of which there is a bounded number, so all ways end in those.
func TestModel(t *testing.T) {
	for _, c := range models {
		t.Run(c.name, func(t *testing.T) {
			if c.soak {
				soak.SkipUnlessSoak(t, "make test has fewer failures in such a group")
			}
			e := &explorer{seed: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, seen: make(map[[2]uint64]struct{})}
			if err := e.visit(newWorld(c.setup)); err != nil {
				t.Fatalf("%v\nafter %v", err, e.path)
			}
			if e.ends == 0 {
				t.Error("no run came to its end")
			}
			t.Logf("%d states, %d of them ends, longest way %d", len(e.seen), e.ends, e.longest)
		})
	}
}

// explorer visits each state once, depth first.
type explorer struct {
	seed    [2]maphash.Seed
	seen    map[[2]uint64]struct{}
	path    []move
	key     []byte
	ends    int
	longest int
}

func (e *explorer) visit(w *world) error {
	e.key = w.key(e.key[:0])
	k := [2]uint64{maphash.Bytes(e.seed[0], e.key), maphash.Bytes(e.seed[1], e.key)}
	if _, seen := e.seen[k]; seen {
		return nil
	}
	e.seen[k] = struct{}{}
	e.longest = max(e.longest, len(e.path))
	if len(e.path) > 500 {
		return fmt.Errorf("it goes on and on")
	}
	moves, optional := w.moves()
	if len(moves) == optional {
		if err := w.over(); err != nil {
			return err
		}
		e.ends++
	}
	for _, m := range moves {
		next := w.copy()
		e.path = append(e.path, m)
		if err := next.do(m); err != nil {
			return err
		}
		if err := e.visit(next); err != nil {
			return err
		}
		e.path = e.path[:len(e.path)-1]
	}
	return nil
}
