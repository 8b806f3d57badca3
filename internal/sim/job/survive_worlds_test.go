package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

// kin are two jobs that go on without procs, and whose procs are members of one communicator from when they have
// met.
type kin struct {
	k      *kernel.Kernel
	worlds []*World
	procs  int    // of both
	met    int    // how many of them
	begun  uint64 // the event at which all have
}

// newKin makes two jobs whose procs live once they have met, with their rank in the common communicator.
func newKin(t *testing.T, seed uint64, r *recovery) *kin {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 6))
	x := &kin{k: kernel.New(seed)}
	together := NewWorlds(x.k, WorldsConfig{Link: rough().Direct})
	port := ""
	for first := range 2 {
		cfg := Config{Survive: true, Direct: true, Links: rough(), Worlds: together}
		for range 1 + random.IntN(2) {
			cfg.Sites = append(cfg.Sites, Site{Hosts: []int{1 + random.IntN(2)}})
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

// TestRecoveryOfTwoWorlds: of two jobs that have met procs and sites are lost anywhere, and those that are left of
// both go on: each has agreed on the same as the others, and comes to the end.
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
			if random.IntN(4) == 0 {
				f.Kind = CrashNode
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
				case p.crashed || p.s.dead:
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

// TestWorldIsLostUnseen: a world is lost as a whole, so that nobody of it can tell, and each proc of the other one
// waits for one of it to which it has never sent anything.
func TestWorldIsLostUnseen(t *testing.T) {
	for seed := range seeds(20) {
		k := kernel.New(seed)
		together, port := NewWorlds(k, WorldsConfig{Link: rough().Direct}), ""
		var worlds []*World
		for _, first := range []bool{true, false} {
			w, err := New(k, Config{Survive: true, Direct: true, Sites: []Site{{Hosts: []int{4}}}, Links: rough(), Worlds: together, Program: func(e Env) error {
				inter, err := couples(e, &port, first)
				if err != nil {
					return err
				}
				me := e.World().Rank()
				if !first {
					if me == 0 {
						k.After(time.Second, func() { worlds[1].InjectFault(Fault{Kind: CrashNode}) }) // all wait then
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
	}
}
