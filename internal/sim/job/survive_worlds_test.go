package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

// kin are two jobs that go on without procs, and whose procs are members of one communicator from
// when they have met.
type kin struct {
	k      *kernel.Kernel
	worlds []*Simulation
	procs  int    // of both
	met    int    // how many of them
	begun  uint64 // the event at which all have
}

// newKin makes two jobs whose procs live once they have met, with their rank in the common
// communicator.
func newKin(t *testing.T, seed uint64, r *recovery) *kin {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 6))
	x := &kin{k: kernel.New(seed)}
	together := NewWorlds(x.k, WorldsConfig{Link: rough().Direct})
	port := ""
	for first := range 2 {
		cfg := Config{Survive: true, Direct: true, Links: rough(), Worlds: together}
		for range 1 + random.IntN(2) {
			hosts := []int{1 + random.IntN(2)}
			for random.IntN(3) == 0 {
				hosts = append(hosts, 1)
			}
			cfg.Sites = append(cfg.Sites, Site{Hosts: hosts})
		}
		cfg.Program = func(e Env) error { return x.live(e, r, &port, first == 0) }
		w, err := New(x.k, cfg)
		if err != nil {
			t.Fatal(err)
		}
		x.worlds, x.procs = append(x.worlds, w), x.procs+cfg.Procs()
	}
	r.said, r.early = make([][]string, x.procs), func() bool { return x.met < x.procs }
	return x
}

// couples makes an intercommunicator of two jobs, of which the first has the port.
func couples(e Env, port *string, first bool) (*mpi.Comm, error) {
	c := e.World()
	if first && c.Rank() == 0 {
		name, err := rankOf(e).OpenPort(nil)
		if err != nil {
			return nil, err
		}
		*port = name
	}
	for *port == "" {
		e.Pause(time.Millisecond)
	}
	meet := c.Accept
	if !first {
		meet = c.Connect
	}
	return meet(*port, nil, 0)
}

// meets makes a communicator of all procs of two jobs, of which the first has the port.
func meets(e Env, port *string, first bool) (*mpi.Comm, error) {
	inter, err := couples(e, port, first)
	if err != nil {
		return nil, err
	}
	all, err := inter.Merge(!first)
	if err != nil {
		return nil, err
	}
	return all, all.Barrier()
}

// live is the program of a proc.
func (x *kin) live(e Env, r *recovery, port *string, first bool) error {
	all, err := meets(e, port, first)
	if err != nil {
		return err
	}
	if x.met++; x.met == x.procs {
		x.begun = x.k.Events()
	}
	return r.goOn(e, all, all.Rank())
}

// run runs both, and returns what is wrong.
func (x *kin) run() (err error) {
	for i, r := range RunAll(x.k, bounds, x.worlds...) {
		if e := errors.Join(r.Err, r.Unfinished()); e != nil {
			err = errors.Join(err, fmt.Errorf("world %d: %w", i, e))
		}
	}
	return err
}

// TestRecoveryOfTwoWorlds: of two jobs that have met procs and sites are lost anywhere, and those
// that are left of both go on: each has agreed on the same as the others, and comes to the end.
func TestRecoveryOfTwoWorlds(t *testing.T) {
	shrunk := 0
	for seed := range seeds(150) {
		r := &recovery{Recover: script.Recover{Steps: 6, Revokes: seed%2 == 0, Begins: seed%3 == 0, Acks: seed%5 < 2}}
		whole := newKin(t, seed, r)
		if err := whole.run(); err != nil {
			t.Fatalf("seed %d, without losses: %v\n%s", seed, err, whole.k.Trace())
		}
		x, random := newKin(t, seed, r), rand.New(rand.NewPCG(seed, 7))
		for range 1 + random.IntN(3) {
			f := Fault{Kind: CrashProc, Event: whole.begun + 1 + random.Uint64N(whole.k.Events()-whole.begun), Target: random.IntN(64)}
			switch random.IntN(6) {
			case 0:
				f.Kind = CrashNode
			case 1:
				f.Kind = LoseHost
			}
			x.worlds[random.IntN(2)].Plan(f)
		}
		if seed%4 > 0 {
			r.deaths = rand.New(rand.NewPCG(seed, 8))
		}
		if err := x.run(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, x.k.Trace())
		}
		var first []string
		rank := 0
		for _, w := range x.worlds {
			for _, p := range w.procs {
				said := r.said[rank]
				rank++
				switch {
				case p.lost():
				case first == nil:
					first = said
				case !slices.Equal(first, said):
					t.Fatalf("seed %d: rank %d: %q, others %q\n%s", seed, rank-1, said, first, x.k.Trace())
				}
			}
		}
		if len(first) > 1 {
			shrunk++
		}
	}
	if shrunk < int(seeds(150))/3 {
		t.Errorf("only %d pairs of jobs went on in another communicator", shrunk)
	}
}

// TestWorldIsLostUnseen: a world is lost as a whole, so that nobody of it can tell, and each proc
// of the other one waits for one of it to which it has never sent anything. That nobody is at the
// other ends of their 16 links is found out by one search for another link, or by two if not all
// are broken when that dials last.
func TestWorldIsLostUnseen(t *testing.T) {
	for seed := range seeds(20) {
		before := 0
		k := kernel.New(seed)
		together, port := NewWorlds(k, WorldsConfig{Link: rough().Direct}), ""
		var worlds []*Simulation
		for _, first := range []bool{true, false} {
			w, err := New(k, Config{Survive: true, Direct: true, Sites: []Site{{Hosts: []int{4}}}, Links: rough(), Worlds: together, Program: func(e Env) error {
				inter, err := couples(e, &port, first)
				if err != nil {
					return err
				}
				me := e.World().Rank()
				if !first {
					if me == 0 {
						k.After(time.Second, func() { // all wait then
							before = together.Counts.Dials
							worlds[1].InjectFault(Fault{Kind: CrashNode})
						})
					}
					_, err := mpi.Recv(e.World(), make([]int64, 1), me, 0)
					return err
				}
				if _, err := mpi.Recv(inter, make([]int64, 1), (me+1)%4, 0); !errors.Is(err, mpi.ErrProcFailed) {
					return fmt.Errorf("not the loss of rank %d: %w", (me+1)%4, err)
				}
				if _, err := inter.Agree(1); !errors.Is(err, mpi.ErrProcFailed) {
					return fmt.Errorf("an agreement without the lost ones: %w", err)
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			worlds = append(worlds, w)
		}
		results := RunAll(k, bounds, worlds...)
		if err := errors.Join(results[0].Err, results[0].Unfinished()); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, k.Trace())
		}
		if n := together.Counts.Dials - before; n == 0 || n > 2*worldCandidates*dynamic.MaxDials {
			t.Fatalf("seed %d: %d dials to a node that is lost\n%s", seed, n, k.Trace())
		}
	}
}

// linkOf returns the link between two procs of different worlds.
func (a *Worlds) linkOf(p, q *proc) *kernel.Link {
	i := slices.IndexFunc(a.links, func(x worldLink) bool {
		return !x.l.Over() && slices.Contains(x.of, p) && slices.Contains(x.of, q)
	})
	return a.links[i].l
}

// TestSilentProcIsNotWaitedFor: a proc of another job loses its links to ranks 0 and 1 of one, asks
// for other ones, and then computes for long. It is to give way, as rank 2 finds out, and neither
// reads nor ends the links by which the others see to it that it knows: that to rank 0 is made
// before that hears of it, that to rank 1 after it. They come to their ends all the same.
func TestSilentProcIsNotWaitedFor(t *testing.T) {
	const computes, enough = time.Hour / 2, 150 * time.Second
	tried := 0
	for seed := range uint64(12) {
		k := kernel.New(seed)
		together, port := NewWorlds(k, WorldsConfig{Link: kernel.LinkSpec{Delay: 50 * time.Microsecond}}), ""
		var worlds []*Simulation
		silent := func() *proc { return worlds[1].procs[0] }
		gives := func() bool { return worlds[0].procs[0].member().Compare(silent().member()) < 0 }
		cut := func(rank int) { together.linkOf(worlds[0].procs[rank], silent()).Cut(errors.New("it was cut")) }
		goesOn := func(e Env, all *mpi.Comm) error {
			if all.Rank() == 1 {
				e.Pause(30 * time.Second)
			}
			if _, err := mpi.Recv(all, make([]int64, 1), 3, 0); !errors.Is(err, mpi.ErrProcFailed) {
				return fmt.Errorf("not the loss of the proc that computes: %w", err)
			}
			return nil
		}
		isSilent := func(e Env, all *mpi.Comm) error {
			e.Pause(time.Second) // the others wait
			for rank := range 2 {
				cut(rank)
				pair := dynamic.WorldPair{Local: silent().member(), Peer: worlds[0].procs[rank].member()}
				for silent().h.meets.Links.Pairs.State(pair) == dynamic.Linked {
					if _, _, err := mpi.Iprobe(all, 2, 0); err != nil {
						return err
					}
					e.Pause(time.Microsecond)
				}
			}
			cut(2)
			k.After(enough, func() {
				for _, p := range worlds[0].procs {
					if !p.fini {
						t.Errorf("seed %d: rank %d is not through Finalize after %v", seed, p.rank, enough)
					}
				}
			})
			e.Pause(computes)
			return nil
		}
		for i, n := range []int{3, 1} {
			w, err := New(k, Config{Survive: true, Direct: true, Sites: []Site{{Hosts: []int{n}}}, Links: rough(), Worlds: together, Program: func(e Env) error {
				all, err := meets(e, &port, i == 0)
				if err != nil || !gives() {
					return err
				}
				return []func(Env, *mpi.Comm) error{goesOn, isSilent}[i](e, all)
			}})
			if err != nil {
				t.Fatal(err)
			}
			worlds = append(worlds, w)
		}
		results := RunAll(k, bounds, worlds...)
		if gives() {
			tried++
		}
		if err := errors.Join(results[0].Err, results[0].Unfinished()); err != nil || t.Failed() {
			t.Fatalf("seed %d: %v\n%s", seed, err, k.Trace())
		}
	}
	if tried < 2 {
		t.Errorf("the proc that computes gives way in only %d of the jobs", tried)
	}
}
