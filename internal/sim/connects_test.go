package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

// ManyConnects is many procs that connect to one port at once: those of the first world accept some
// of them, and then close it. Some callers end without disconnecting.
type ManyConnects struct {
	Seed    uint64
	Worlds  []int // number of procs: of the world that accepts, and of those that connect
	Backlog int   // callers that may wait; the others are refused and connect again
	Served  int   // how many are accepted
}

// NewManyConnects makes the case of a seed, with so many callers.
func NewManyConnects(seed uint64, callers int) *ManyConnects {
	rng := rand.New(rand.NewPCG(seed, 0x63726f7764))
	c := &ManyConnects{Seed: seed, Worlds: []int{1 + rng.IntN(3)}, Backlog: 1 + rng.IntN(callers), Served: 1 + rng.IntN(callers)}
	if rng.IntN(2) == 0 {
		c.Served = callers
	}
	for callers > 0 {
		n := min(callers, 1+rng.IntN(30))
		c.Worlds, callers = append(c.Worlds, n), callers-n
	}
	return c
}

// String formats the case in one line.
func (c *ManyConnects) String() string {
	return fmt.Sprintf("seed %d: worlds of %v procs; %d callers may wait, %d are served", c.Seed, c.Worlds, c.Backlog, c.Served)
}

// Run runs the case, and returns what is wrong.
func (c *ManyConnects) Run() *Verdict {
	base := Generate(c.Seed, Limits{Worlds: true, NoFaults: true}) // its links
	base.Sites, base.Backlog, base.Program = nil, c.Backlog, &script.Program{Worlds: c.Worlds}
	for _, n := range c.Worlds {
		base.Sites = append(base.Sites, job.Site{Hosts: []int{n}})
		base.Program.Procs += n
	}
	return runTwisted(base, 0, func(x *execution) {
		play := x.program
		x.program = func(e script.Env) error {
			p := e.(player)
			if err := c.runProc(p); err != nil {
				return err
			}
			if c.deserts(p.number) && base.Program.WorldOf(p.number) > 0 {
				x.records[p.number].Ended = true
				x.records[p.number].Comms = []script.Membership{{Step: -1, Name: string(rune('a' + base.Program.WorldOf(p.number))), Rank: p.World().Rank(), Size: p.World().Size()}}
				return nil
			}
			return play(e) // nothing to do but to check that nothing is left
		}
	})
}

// deserts reports whether a caller ends without disconnecting, like all of its world.
func (c *ManyConnects) deserts(proc int) bool {
	p := script.Program{Worlds: c.Worlds}
	return (uint64(p.WorldOf(proc))+c.Seed)%4 == 0
}

// runProc is what each proc does.
func (c *ManyConnects) runProc(p player) error {
	if p.x.c.Program.WorldOf(p.number) == 0 {
		return c.receive(p)
	}
	return c.call(p)
}

// failedMPI wraps an error of MPI.
func failedMPI(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", script.ErrMPI, err)
}

// receive accepts callers, exchanges messages with them, disconnects and closes the port.
func (c *ManyConnects) receive(p player) error {
	world, port := p.World(), ""
	var deserted []*mpi.Comm // the other sides of these end with their jobs, and it waits for that
	var err error
	if world.Rank() == 0 {
		if port, err = p.MPI().OpenPort(nil); err != nil {
			return failedMPI(err)
		}
		p.x.shared.Ports["port"] = port
	}
	for range c.Served {
		with, err := world.Accept(port, nil, 0)
		if err != nil {
			return failedMPI(err)
		}
		caller := []int64{0}
		if _, err := mpi.Sendrecv(with, []int64{int64(p.number)}, 0, 1, caller, 0, 1); err != nil {
			return failedMPI(err)
		}
		p.x.cover["callers served"]++
		if c.deserts(int(caller[0])) {
			deserted = append(deserted, with)
		} else if err := with.Disconnect(); err != nil {
			return failedMPI(err)
		}
	}
	if world.Rank() == 0 {
		p.x.shared.Ports["closed"] = "yes"
		if err := p.MPI().ClosePort(port); err != nil {
			return failedMPI(err)
		}
	}
	for _, with := range deserted {
		err := with.Disconnect()
		if class := mpi.ErrorClass(err); class != mpierr.ProcAborted {
			return fmt.Errorf("%w: class %v of Disconnect from one that has ended: %w", script.ErrMismatch, class, err)
		}
		p.x.cover["callers that ended while connected"]++
		if err := with.Free(); err != nil {
			return failedMPI(err)
		}
	}
	return nil
}

// call connects to the port until that succeeds or the port is closed.
func (c *ManyConnects) call(p player) error {
	for n := 0; p.x.shared.Ports["port"] == ""; n++ {
		p.Pause(20 * time.Microsecond << min(n, 8))
	}
	for n := 0; ; n++ {
		with, err := p.MPI().Self().Connect(p.x.shared.Ports["port"], nil, 0)
		if err == nil {
			return c.talkToAll(p, with)
		}
		if class := mpi.ErrorClass(err); class != mpierr.Port && class != mpierr.ProcAborted {
			return fmt.Errorf("%w: class %v of %w", script.ErrMismatch, class, err)
		}
		if p.x.shared.Ports["closed"] != "" {
			p.x.cover["callers of a closed port"]++
			return nil
		}
		p.x.cover["callers that were refused"]++
		p.Pause(p.Between(0, 5*time.Millisecond))
	}
}

func (c *ManyConnects) talkToAll(p player, with *mpi.Comm) error {
	n, err := with.RemoteSize()
	for i := range n {
		in := []int64{0}
		_, e := mpi.Sendrecv(with, []int64{int64(p.number)}, i, 1, in, i, 1)
		if err = errors.Join(err, e); e == nil && in[0] != int64(i) {
			return fmt.Errorf("%w: %d answers in place of %d", script.ErrMismatch, in[0], i)
		}
	}
	if err != nil || c.deserts(p.number) {
		return failedMPI(err)
	}
	return failedMPI(with.Disconnect())
}

// TestManyConnects makes 100 procs connect to a port at once.
func TestManyConnects(t *testing.T) {
	covered := map[string]int64{}
	for seed := uint64(1); seed <= 6; seed++ {
		c := NewManyConnects(seed, 100)
		v := c.Run()
		if v.Failure != nil {
			t.Errorf("%v: %v", c, v.Failure)
		}
		for name, n := range v.Coverage {
			covered[name] += n
		}
	}
	for _, name := range []string{"callers served", "callers that ended while connected", "callers of a closed port", "callers that were refused"} {
		if covered[name] == 0 {
			t.Errorf("there are no %s", name)
		}
	}
	t.Log(covered)
}
