package worlds

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/sim/job"
)

// Crowd is many procs that call one port at once: those of the first world accept some
// of them, and then close it. Some callers end without having disconnected.
type Crowd struct {
	Seed    uint64
	Worlds  []int // procs: of the one that accepts, and of those that call
	Backlog int   // callers that may wait; the others are refused and call again
	Served  int   // how many are accepted
}

// NewCrowd makes the case of a seed, of so many callers.
func NewCrowd(seed uint64, callers int) *Crowd {
	rng := rand.New(rand.NewPCG(seed, 0x63726f7764))
	c := &Crowd{Seed: seed, Worlds: []int{1 + rng.IntN(3)}, Backlog: 1 + rng.IntN(callers), Served: 1 + rng.IntN(callers)}
	if rng.IntN(2) == 0 {
		c.Served = callers
	}
	for callers > 0 {
		n := min(callers, 1+rng.IntN(30))
		c.Worlds, callers = append(c.Worlds, n), callers-n
	}
	return c
}

// String is the case in one line.
func (c *Crowd) String() string {
	return fmt.Sprintf("seed %d: worlds of %v procs; %d callers may wait, %d are served", c.Seed, c.Worlds, c.Backlog, c.Served)
}

// Run lets it happen, and says what is wrong.
func (c *Crowd) Run(trace int) *Verdict {
	base := Generate(c.Seed, Limits{Procs: DefaultProcs, Steps: DefaultSteps}) // its links
	base.Program = &Program{Worlds: c.Worlds}
	base.Sites, base.Abroad.Backlog = nil, c.Backlog
	for _, n := range c.Worlds {
		base.Sites = append(base.Sites, []job.Site{{Hosts: []int{n}}})
	}
	return runWith(base, trace, func(x *execution) { x.part = func(r *rank) error { return c.throng(r) } })
}

// deserts tells whether a caller ends without a word, as all of its world do.
func (c *Crowd) deserts(proc int) bool {
	p := Program{Worlds: c.Worlds}
	return (uint64(p.worldOf(proc))+c.Seed)%4 == 0
}

// throng is what each proc does.
func (c *Crowd) throng(r *rank) error {
	work := c.call
	if r.x.program.worldOf(r.me) == 0 {
		work = c.receive
	}
	if err := work(r); err != nil {
		return fmt.Errorf("%s: %w", r.x.name(r.me), err)
	}
	if c.deserts(r.me) && r.x.program.worldOf(r.me) > 0 {
		return nil
	}
	return r.farewell()
}

// receive accepts callers, talks to them and parts, and closes the port.
func (c *Crowd) receive(r *rank) error {
	world, port := r.env.World(), ""
	var deserted []*mpi.Comm // whose other side ends with its job, for which it waits
	var err error
	if world.Rank() == 0 {
		if port, err = r.mpi.OpenPort(nil); err != nil {
			return failed(err)
		}
		r.x.names["crowd"] = port
	}
	for range c.Served {
		with, err := world.Accept(port, nil, 0)
		if err != nil {
			return failed(err)
		}
		caller := []int64{0}
		if _, err := mpi.Sendrecv(with, []int64{int64(r.me)}, 0, 1, caller, 0, 1); err != nil {
			return failed(err)
		}
		r.x.cover["callers served"]++
		if c.deserts(int(caller[0])) {
			deserted = append(deserted, with)
		} else if err := with.Disconnect(); err != nil {
			return failed(err)
		}
	}
	if world.Rank() == 0 {
		r.x.names["closed"] = "yes"
		if err := r.mpi.ClosePort(port); err != nil {
			return failed(err)
		}
	}
	for _, with := range deserted {
		err := with.Disconnect()
		if class := mpi.ErrorClass(err); class != mpierr.ProcAborted {
			return fmt.Errorf("%w: class %v of Disconnect from one that has ended: %w", ErrResult, class, err)
		}
		r.x.cover["callers that ended while connected"]++
		if err := with.Free(); err != nil {
			return failed(err)
		}
	}
	return nil
}

// call connects to the port until that is good or the port is closed.
func (c *Crowd) call(r *rank) error {
	for n := 0; r.x.names["crowd"] == ""; n++ {
		r.idle(n)
	}
	for n := 0; ; n++ {
		with, err := r.mpi.Self().Connect(r.x.names["crowd"], nil, 0)
		if err == nil {
			return c.talkToAll(r, with)
		}
		if class := mpi.ErrorClass(err); class != mpierr.Port && class != mpierr.ProcAborted {
			return fmt.Errorf("%w: class %v of %w", ErrResult, class, err)
		}
		if r.x.names["closed"] != "" {
			r.x.cover["callers of a closed port"]++
			return nil
		}
		r.x.cover["callers that found it crowded"]++
		r.env.Pause(r.x.between(0, 5*time.Millisecond))
	}
}

func (c *Crowd) talkToAll(r *rank, with *mpi.Comm) error {
	n, err := with.RemoteSize()
	for i := range n {
		in := []int64{0}
		_, e := mpi.Sendrecv(with, []int64{int64(r.me)}, i, 1, in, i, 1)
		if err = errors.Join(err, e); e == nil && in[0] != int64(i) {
			return fmt.Errorf("%w: %d answers in place of %d", ErrResult, in[0], i)
		}
	}
	if err != nil || c.deserts(r.me) {
		return failed(err)
	}
	return failed(with.Disconnect())
}

// TestCrowd has 100 procs call a port at once.
func TestCrowd(t *testing.T) {
	if *only > 0 {
		c := NewCrowd(*only, 100)
		v := c.Run(3000)
		t.Logf("%v\n%s\n%s: %v", c, v.Trace, v.Oracle, v.Err)
		return
	}
	covered := map[string]int64{}
	for seed := uint64(1); seed <= 6**factor; seed++ {
		c := NewCrowd(seed, 100)
		v := c.Run(0)
		if v.Oracle != "" {
			t.Errorf("%v: %s: %v", c, v.Oracle, v.Err)
		}
		for name, n := range v.Covered {
			covered[name] += n
		}
	}
	for _, name := range []string{"callers served", "callers that ended while connected", "callers of a closed port", "callers that found it crowded"} {
		if covered[name] == 0 {
			t.Errorf("there are no %s", name)
		}
	}
	t.Log(covered)
}
