package job

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// spareRun is a job of two sites whose procs spawn two at its spare site, so many times.
type spareRun struct {
	spare   Spare
	crash   time.Duration // of the server; 0: it does not crash
	limit   time.Duration
	spawns  int
	spawned int // that succeeded
	refused int // with the class of spawn
}

// run runs the job under a seed.
func (x *spareRun) run(t *testing.T, seed uint64) (*Worlds, []Result) {
	t.Helper()
	k := kernel.New(seed)
	var together *Worlds
	child := func(e Env) error {
		parents := rankOf(e).Parent()
		return errors.Join(parents.Barrier(), parents.Disconnect())
	}
	together = NewWorlds(k, WorldsConfig{Link: rough().Direct, Spawn: func(_ string, sites []Site) (*Config, error) {
		return &Config{Sites: sites, Direct: true, Links: rough(), Worlds: together, Program: child, Limit: x.limit}, nil
	}})
	w, err := New(k, Config{
		Sites: []Site{{Hosts: []int{2}}, {Hosts: []int{1}}}, Spares: []Spare{x.spare}, Direct: true, Links: rough(), Worlds: together, Limit: x.limit,
		Program: x.parents,
	})
	if err != nil {
		t.Fatal(err)
	}
	if x.crash > 0 {
		k.After(x.crash, w.server.crash)
	}
	return together, RunAll(k, Bounds{Events: 3e6, Time: time.Hour}, w)
}

func (x *spareRun) parents(e Env) error {
	for i := range x.spawns {
		info := mpi.NewInfo()
		if err := info.Set("host", "spare0"); err != nil {
			return err
		}
		e.Pause(time.Duration(i) * time.Millisecond)
		c, _, err := e.World().Spawn(mpi.Command{Path: "p", Procs: 2, Info: info}, i%3)
		if mpi.ErrorClass(err) == mpierr.Spawn {
			if e.World().Rank() == 0 {
				x.refused++
			}
			continue
		}
		if err != nil {
			return err
		}
		if e.World().Rank() == 0 {
			x.spawned++
		}
		if err := c.Barrier(); err != nil { // after an error nobody may use c, not even to disconnect
			return err
		}
		if err := c.Disconnect(); err != nil {
			return err
		}
	}
	return nil
}

// TestSpareIsTaken: whenever it comes, and also if its links break and are made again.
func TestSpareIsTaken(t *testing.T) {
	for seed := range seeds(60) {
		x := spareRun{spawns: 3, limit: time.Minute, spare: Spare{Slots: 2, Comes: time.Duration(seed%7) * 300 * time.Millisecond}}
		if seed%3 == 1 {
			x.spare.Cut = time.Duration(seed) * 20 * time.Millisecond
		}
		together, results := x.run(t, seed)
		for w, r := range results {
			if err := errors.Join(append(r.Procs(), r.Err)...); err != nil {
				t.Errorf("seed %d, world %d: %v", seed, w, err)
			}
		}
		spare := results[0].World.spares[0]
		if x.spawned != x.spawns || !spare.home.done || spare.failed != nil || together.Left() != (Remains{}) {
			t.Errorf("seed %d: %d spawned, spare site done %t: %v; left %+v", seed, x.spawned, spare.home.done, spare.failed, together.Left())
		}
	}
}

// TestSpareDoesNotCome: spawns are refused when they have waited for their limit, and the job goes
// well.
func TestSpareDoesNotCome(t *testing.T) {
	for seed := range seeds(10) {
		x := spareRun{spawns: 2, limit: time.Second, spare: Spare{Slots: 2, Comes: time.Hour}}
		if seed%2 == 1 { // it is lost before
			x.spare.Comes, x.spare.Crash = 0, time.Microsecond
		}
		_, results := x.run(t, seed)
		for w, r := range results {
			err := errors.Join(r.Procs()...)
			if r.Err != nil && !errors.Is(r.Err, ErrStuck) || err != nil { // it has yet to come when all is over
				t.Errorf("seed %d, world %d: %v %v", seed, w, err, r.Err)
			}
		}
		if x.refused != 2 || x.spawned != 0 {
			t.Errorf("seed %d: %d refused, %d spawned", seed, x.refused, x.spawned)
		}
	}
}

// TestSpareFaults: the spare site or the server crashes at any time. Nothing hangs: each spawn
// succeeds or is refused, or the job of the parents fails by what it has spawned; and the spare
// site ends.
func TestSpareFaults(t *testing.T) {
	ended := map[string]int{}
	for seed := range seeds(150) {
		x := spareRun{spawns: 3, limit: 2 * time.Second, spare: Spare{Slots: 4, Comes: time.Duration(seed%5) * 10 * time.Millisecond}}
		at := time.Duration(1+seed*seed%997) * 100 * time.Microsecond
		if seed%2 == 0 {
			x.spare.Crash = at
		} else {
			x.crash = at + 20*time.Millisecond
		}
		_, results := x.run(t, seed)
		for w, r := range results {
			if errors.Is(r.Err, ErrStuck) {
				t.Errorf("seed %d, world %d: %v", seed, w, r.Err)
			}
		}
		spare := results[0].World.spares[0]
		if !spare.home.done {
			t.Errorf("seed %d: the spare site has not ended", seed)
		}
		ended[fmt.Sprintf("spawned %d of 3, refused %d", x.spawned, x.refused)]++
	}
	if len(ended) < 3 {
		t.Errorf("all seeds end alike: %v", ended)
	}
	t.Log(ended)
}
