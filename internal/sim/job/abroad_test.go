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
func two(t *testing.T, seed uint64, cfg AbroadConfig, a, b func(Env) error) (*Abroad, []Result) {
	t.Helper()
	k := kernel.New(seed)
	abroad := NewAbroad(k, cfg)
	var worlds []*World
	for _, program := range []func(Env) error{a, b} {
		w, err := New(k, Config{Sites: []Site{{Hosts: []int{2}}}, Direct: true, Links: rough(), Abroad: abroad, Program: program})
		if err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, w)
	}
	return abroad, RunAll(k, Bounds{Events: 1e6, Time: time.Hour}, worlds...)
}

func rankOf(e Env) *mpi.Proc { return e.(*proc).MPI() }

// TestAbroad has two jobs meet.
func TestAbroad(t *testing.T) {
	for seed := range seeds(20) {
		port := ""
		abroad, results := two(t, seed, AbroadConfig{Link: rough().Direct}, func(e Env) (err error) {
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
		if n := abroad.Counts; n.Calls != 1 || n.Links == 0 {
			t.Errorf("seed %d: %+v", seed, n)
		}
	}
}

// TestAbroadRefuses: who calls a port that is closed, or crowded, hears it.
func TestAbroadRefuses(t *testing.T) {
	for name, backlog := range map[string]int{"closed": 0, "crowded": 1} {
		port, waits := "", 0
		abroad, results := two(t, 3, AbroadConfig{Backlog: backlog}, func(e Env) (err error) {
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
		if want := 2 - backlog; abroad.Counts.Refused != want {
			t.Errorf("%s: %d are refused, want %d", name, abroad.Counts.Refused, want)
		}
		if ports, _, links, _ := abroad.Left(); ports+links > 0 {
			t.Errorf("%s: %d ports and %d links are left", name, ports, links)
		}
	}
}

// TestAbroadHasNoNames: what is asked about names is answered.
func TestAbroadHasNoNames(t *testing.T) {
	ask := func(e Env) error {
		x := rankOf(e)
		_, err := x.LookupName("heat", nil)
		for what, err := range map[string]error{"publish": x.PublishName("heat", nil, "port"), "look up": err, "unpublish": x.UnpublishName("heat", nil, "port")} {
			if class := mpi.ErrorClass(err); class != mpierr.Other {
				return fmt.Errorf("%s: class %v of %w", what, class, err)
			}
		}
		return nil
	}
	_, results := two(t, 1, AbroadConfig{}, ask, ask)
	for w, r := range results {
		if err := errors.Join(append(r.Procs(), r.Err)...); err != nil {
			t.Errorf("world %d: %v", w, err)
		}
	}
}
