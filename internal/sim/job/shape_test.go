package job

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// characters are very different kinds of link.
var characters = map[string]kernel.LinkSpec{
	"immediate":  {Capacity: 1 << 20},
	"fast":       {Delay: time.Microsecond, Jitter: time.Microsecond, Capacity: 64 << 10},
	"slow":       {Delay: 50 * time.Millisecond, Jitter: time.Millisecond, Capacity: 64 << 10},
	"moody":      {Jitter: 20 * time.Millisecond, Capacity: 10 << 10, Chop: 0.1},
	"tiny":       {Delay: time.Microsecond, Capacity: 1},
	"small":      {Delay: 10 * time.Microsecond, Capacity: 100, Chop: 0.3},
	"in shreds":  {Delay: 5 * time.Microsecond, Jitter: 5 * time.Microsecond, Capacity: 4000, Chop: 1},
	"treasonous": {Delay: time.Millisecond, Capacity: 3000, Chop: 0.5, Reset: 1},
}

// TestLinkCharacters: a job works with any kind of link in any place, except that local sockets do
// not lose what was sent.
func TestLinkCharacters(t *testing.T) {
	for name, spec := range characters {
		for place := range 4 {
			t.Run(fmt.Sprintf("%s/%d", name, place), func(t *testing.T) {
				for seed := range seeds(4) {
					cfg := twoSites(func(e Env) error { return ringOf(e, 20) })
					cfg.Links = rough()
					l := []*kernel.LinkSpec{&cfg.Links.Server, &cfg.Links.Proc, &cfg.Links.Channel, &cfg.Links.Direct}[place]
					*l = spec
					cfg.Links.Proc.Reset = 0
					cfg.Direct = place == 3 || seed%2 == 0
					if seed%2 == 1 {
						cfg.Resume = &Resume{}
					}
					clean(t, seed, simulate(t, seed, cfg))
				}
			})
		}
	}
}

// TestShapes: few sites with many hosts, many sites with one rank, with direct links between some
// of them.
func TestShapes(t *testing.T) {
	for seed := range seeds(25) {
		rng := rand.New(rand.NewPCG(seed, 9))
		cfg := Config{Direct: seed%4 > 0, Links: rough(), Program: func(e Env) error { return ringOf(e, 10) }}
		sites := []int{1, 2, 5, 9, 32}[seed%5]
		for range sites {
			s := Site{NoDirect: rng.IntN(4) == 0}
			for range 1 + rng.IntN(max(1, 6/sites)) {
				s.Hosts = append(s.Hosts, 1+rng.IntN(max(1, 8/sites)))
			}
			if sites == 32 {
				s.Hosts = []int{1}
			}
			cfg.Sites = append(cfg.Sites, s)
		}
		clean(t, seed, simulate(t, seed, cfg))
	}
}

func TestOneRankAlone(t *testing.T) {
	for seed := range seeds(5) {
		cfg := Config{Sites: []Site{{Hosts: []int{1}}}, Direct: true, Links: rough(), Program: ring}
		clean(t, seed, simulate(t, seed, cfg))
	}
}

// TestNoDirect: a site without direct links gets none, and the others get theirs.
func TestNoDirect(t *testing.T) {
	cfg := Config{Direct: true, Links: rough(), Program: ring, Sites: []Site{{Hosts: []int{1}}, {Hosts: []int{2}, NoDirect: true}, {Hosts: []int{1}}}}
	r := simulate(t, 1, cfg)
	clean(t, 1, r)
	direct := 0
	for _, s := range r.World.sites {
		for x, phase := range s.direct.Pairs.All() {
			if phase != dynamic.Linked {
				continue
			}
			direct++
			for _, rank := range []wire.WorldRank{x.local, x.peer} {
				if rank == 1 || rank == 2 {
					t.Errorf("rank %d has a direct link", rank)
				}
			}
		}
	}
	if direct == 0 {
		t.Error("nobody has a direct link")
	}
}

// TestRoutes: procs are linked by a transport that the routes of both sites allow, and data go in
// the representation that either insists on.
func TestRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   Site
		direct bool
		data   string
	}{
		"one is preferred by both":     {Site{Prefer: []string{Encrypted, Plain}}, Site{Prefer: []string{Plain}}, true, ""},
		"none is preferred by both":    {Site{Prefer: []string{Encrypted}}, Site{Prefer: []string{Plain}}, false, ""},
		"one demands encryption":       {Site{Secret: true, Prefer: []string{Plain, Encrypted}}, Site{Prefer: []string{Plain, Encrypted}}, true, ""},
		"the other has no such thing":  {Site{Secret: true, Prefer: []string{Plain, Encrypted}}, Site{}, false, ""},
		"the other demands encryption": {Site{}, Site{Secret: true, Prefer: []string{Plain, Encrypted}}, false, ""},
		"one insists on external32":    {Site{Data: "external32"}, Site{}, true, "external32"},
		"both insist on other forms":   {Site{Data: "native-be"}, Site{Data: "native-le"}, true, "external32"},
		"both insist on one form":      {Site{Data: "native-be"}, Site{Data: "native-be"}, true, "native-be"},
	} {
		c.a.Hosts, c.b.Hosts = []int{1}, []int{1}
		r := simulate(t, 1, Config{Direct: true, Links: rough(), Program: ring, Sites: []Site{c.a, c.b}})
		clean(t, 1, r)
		if linked := linksOf(r.World, pair{0, 1}).Pairs.State(pair{0, 1}) == dynamic.Linked; linked != c.direct {
			t.Errorf("%s: linked: %t", name, linked)
		}
		for _, s := range r.World.sites {
			if got := s.with(1 - s.rank).data(); c.data != "" && got != c.data {
				t.Errorf("%s: site %d has %s", name, s.rank, got)
			}
		}
	}
}

// TestSitesOfOursWithDifferentForms: three sites of ours, two of which have external32 between them
// since they insist on different forms, use the same messages in collectives.
func TestSitesOfOursWithDifferentForms(t *testing.T) {
	for seed := range seeds(20) {
		cfg := Config{Direct: seed%2 == 0, Links: rough(), Program: func(e Env) error {
			w := e.World()
			c, err := w.Split(w.Rank()%2, -w.Rank())
			if err != nil {
				return err
			}
			sum := []int64{int64(c.Rank())}
			if err := mpi.Allreduce(c, nil, sum, mpi.Sum); err != nil || sum[0] != int64(c.Size()*(c.Size()-1)/2) {
				return fmt.Errorf("sum %d of %d: %w", sum[0], c.Size(), err)
			}
			return ring(e)
		}}
		for i, form := range []string{"native-be", "native-le", ""} {
			cfg.Sites = append(cfg.Sites, Site{Hosts: []int{1 + (i+int(seed))%3}, Data: form})
		}
		r := simulate(t, seed, cfg)
		clean(t, seed, r)
		for _, x := range []struct {
			a, b int
			data string
		}{{0, 1, "external32"}, {1, 2, "native-le"}, {2, 0, "native-be"}} {
			sites := r.World.sites
			if got, back := (sitePair{sites[x.a], sites[x.b]}).data(), (sitePair{sites[x.b], sites[x.a]}).data(); got != x.data || back != x.data {
				t.Errorf("sites %d and %d have %s and %s", x.a, x.b, got, back)
			}
		}
	}
}
