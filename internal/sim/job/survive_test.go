package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// survivors is a job of some sites that goes on without procs and sites that are lost.
func survivors(seed uint64, program func(Env) error) Config {
	random, links := rand.New(rand.NewPCG(seed, 3)), rough()
	links.Channel.Reset = 0
	cfg := Config{Survive: true, Direct: random.IntN(2) == 0, Boxes: random.IntN(2) == 0, Links: links, Program: program}
	for range 2 + random.IntN(3) {
		hosts := []int{1 + random.IntN(3)}
		for random.IntN(3) == 0 && len(hosts) < 6 {
			hosts = append(hosts, 1+random.IntN(2), 1)
		}
		cfg.Sites = append(cfg.Sites, Site{Hosts: hosts})
	}
	if random.IntN(3) == 0 {
		cfg.Resume = &Resume{Cuts: 0.001, Limit: silenceLimit - 2*time.Second} // a machine that is silent is lost before a link to it
	}
	return cfg
}

// lossesOf plans up to most losses at random events of a job, once all procs are in their programs.
func lossesOf(t *testing.T, seed uint64, cfg Config, most int) (faults []Fault) {
	t.Helper()
	var begun uint64
	in, program := 0, cfg.Program
	k, w := world(t, seed, cfg)
	w.cfg.Program = func(e Env) error {
		if in++; in == cfg.Procs() {
			begun = k.Events()
		}
		return program(e)
	}
	if r := w.Run(bounds); r.Err != nil {
		t.Fatalf("seed %d, without losses: %v\n%s", seed, r.Err, k.Trace())
	}
	random := rand.New(rand.NewPCG(seed, 4))
	for range 1 + random.IntN(most) {
		f := Fault{Kind: CrashProc, Event: begun + 1 + random.Uint64N(k.Events()-begun), Target: random.IntN(64)}
		switch random.IntN(6) {
		case 0:
			f.Kind = CrashNode
		case 1, 2:
			f.Kind = LoseHost
		}
		faults = append(faults, f)
	}
	return faults
}

// survive runs a job with losses. Nobody may hang, and all that are left must end in order.
func survive(t *testing.T, seed uint64, cfg Config, faults []Fault) *Simulation {
	t.Helper()
	k, w := world(t, seed, cfg)
	for _, f := range faults {
		w.Plan(f)
	}
	r := w.Run(bounds)
	if err := errors.Join(r.Err, r.Unfinished()); err != nil {
		t.Fatalf("seed %d, %v: %v\n%s", seed, faults, err, k.Trace())
	}
	return w
}

// expected lets errors pass that losses explain.
func expected(err error) error {
	if errors.Is(err, mpi.ErrProcFailed) {
		return nil
	}
	return err
}

// stubborn does the same operations at all procs, whoever is lost.
func stubborn(e Env) error {
	w := e.World()
	me, n := w.Rank(), w.Size()
	for round := range 10 {
		buf, sum := make([]int64, 1+round*200), make([]int64, 1+round*200)
		var err error
		switch round % 5 {
		case 0:
			r, wrong := mpi.Irecv(w, sum, (me+n-1)%n, round)
			if wrong != nil {
				err = wrong
				break
			}
			err = expected(mpi.Send(w, buf, (me+1)%n, round))
			_, wrong = r.Wait()
			err = errors.Join(err, expected(wrong))
		case 1:
			err = mpi.Allreduce(w, buf, sum, mpi.Sum)
		case 2:
			err = mpi.Bcast(w, buf, round%n)
		case 3:
			err = w.Barrier()
		case 4:
			err = mpi.Gather(w, buf[:1], make([]int64, n), n-1)
		}
		if err := expected(err); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		e.Pause(time.Duration(me*round%4) * time.Millisecond)
	}
	return nil
}

// TestSurvivors loses procs and sites anywhere in a job that goes on.
func TestSurvivors(t *testing.T) {
	lost, hosts := 0, 0
	for seed := range seeds(150) {
		cfg := survivors(seed, stubborn)
		w := survive(t, seed, cfg, lossesOf(t, seed, cfg, 3))
		for _, p := range w.procs {
			if p.lost() {
				lost++
			}
			if p.h.lost && !p.s.dead {
				hosts++
			}
		}
	}
	if lost < int(seeds(150)) || hosts < int(seeds(150))/20 {
		t.Errorf("only %d procs were lost, %d of them with a host of a site that goes on", lost, hosts)
	}
}
