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

// two runs two jobs on one kernel.
func two(t *testing.T, seed uint64, cfg WorldsConfig, a, b func(Env) error) (*Worlds, []Result) {
	t.Helper()
	k := kernel.New(seed)
	together := NewWorlds(k, cfg)
	var worlds []*Simulation
	for _, program := range []func(Env) error{a, b} {
		w, err := New(k, Config{Sites: []Site{{Hosts: []int{2}}}, Direct: true, Links: rough(), Worlds: together, Program: program})
		if err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, w)
	}
	return together, RunAll(k, Bounds{Events: 1e6, Time: time.Hour}, worlds...)
}

func rankOf(e Env) *mpi.Proc { return e.(*proc).MPI() }

// TestWorlds makes two jobs meet.
func TestWorlds(t *testing.T) {
	for seed := range seeds(20) {
		port := ""
		together, results := two(t, seed, WorldsConfig{Link: rough().Direct}, func(e Env) (err error) {
			name := ""
			if e.World().Rank() == 0 {
				if name, err = rankOf(e).OpenPort(nil); err != nil {
					return err
				}
				port = name
			}
			c, err := e.World().Accept(name, nil, 0)
			if err != nil {
				return err
			}
			return errors.Join(c.Barrier(), c.Disconnect())
		}, func(e Env) error {
			for port == "" {
				e.Pause(time.Millisecond)
			}
			c, err := e.World().Connect(port, nil, 1)
			if err != nil {
				return err
			}
			if n, err := c.RemoteSize(); err != nil || n != 2 {
				return fmt.Errorf("the others are %d, %w", n, err)
			}
			return errors.Join(c.Barrier(), c.Disconnect())
		})
		for w, r := range results {
			if err := errors.Join(append(r.Procs(), r.Err)...); err != nil {
				t.Errorf("seed %d, world %d: %v", seed, w, err)
			}
		}
		if n := together.Counts; n.Connects != 1 || n.Links == 0 {
			t.Errorf("seed %d: %+v", seed, n)
		}
	}
}

// TestWorldsRefuses: a caller of a port that is closed or full is told so.
func TestWorldsRefuses(t *testing.T) {
	for name, backlog := range map[string]int{"closed": 0, "full": 1} {
		port, waits := "", 0
		together, results := two(t, 3, WorldsConfig{Backlog: backlog}, func(e Env) (err error) {
			if e.World().Rank() > 0 {
				return nil
			}
			if port, err = rankOf(e).OpenPort(nil); err != nil {
				return err
			}
			if backlog == 0 {
				return rankOf(e).ClosePort(port)
			}
			for waits < 1 {
				e.Pause(time.Millisecond)
			}
			return nil // the port ends with it
		}, func(e Env) error {
			for port == "" {
				e.Pause(time.Millisecond)
			}
			e.Pause(10 * time.Millisecond)
			_, err := rankOf(e).Self().Connect(port, nil, 0)
			waits++
			if class := mpi.ErrorClass(err); class != mpierr.Port && class != mpierr.ProcAborted {
				return fmt.Errorf("class %v of %w", class, err)
			}
			return nil
		})
		for w, r := range results {
			if err := errors.Join(append(r.Procs(), r.Err)...); err != nil {
				t.Errorf("%s, world %d: %v", name, w, err)
			}
		}
		if want := 2 - backlog; together.Counts.Refused != want {
			t.Errorf("%s: %d are refused, want %d", name, together.Counts.Refused, want)
		}
		if left := together.Left(); left != (Remains{}) {
			t.Errorf("%s: %+v are left", name, left)
		}
	}
}

// TestWorldsNames: jobs see each other's names, except for names at their own servers, and none is
// left.
func TestWorldsNames(t *testing.T) {
	published, asked := 0, 0
	together, results := two(t, 1, WorldsConfig{}, func(e Env) error {
		own := mpi.NewInfo()
		err := own.Set("scope", "job")
		if e.World().Rank() == 0 {
			err = errors.Join(err, rankOf(e).PublishName("heat", nil, "1"), rankOf(e).PublishName("heat", own, "2"))
		}
		for published++; asked < 2; { // its names end with a job
			e.Pause(time.Millisecond)
		}
		return err
	}, func(e Env) error {
		for published < 2 {
			e.Pause(time.Millisecond)
		}
		own := mpi.NewInfo()
		err := own.Set("scope", "job")
		port, no := rankOf(e).LookupName("heat", nil)
		_, none := rankOf(e).LookupName("heat", own)
		asked++
		if err != nil || no != nil || port != "1" || mpi.ErrorClass(none) != mpierr.Name {
			return fmt.Errorf("%q, %w, and at its own server: %w", port, errors.Join(err, no), none)
		}
		return nil
	})
	for w, r := range results {
		if err := errors.Join(append(r.Procs(), r.Err)...); err != nil {
			t.Errorf("world %d: %v", w, err)
		}
	}
	if left := together.Left(); left != (Remains{}) || together.Counts.Named != 6 {
		t.Errorf("%+v are left, after %d requests", left, together.Counts.Named)
	}
}
