package worlds

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Death is what happens to one of three worlds while they meet: world a opens a port, b
// connects to it, and a root dies, with which its job ends. The others have to go on:
// c connects to whoever is left.
type Death struct {
	Seed    uint64
	Worlds  []int // procs of a, b and c
	Roots   []int
	Accepts bool          // the root of a dies, else that of b
	Step    int           // in which it is when the death is decided
	After   time.Duration // how long after that it dies
	Stopped bool          // it does nothing any more meanwhile
	Node    bool          // all of its node does
	Beside  bool          // a, or b if a dies, is connected with c all the while
}

// worlds of a Death.
const (
	accepting = iota
	connecting
	third
)

// NewDeath makes the case of a seed.
func NewDeath(seed uint64) *Death {
	rng := rand.New(rand.NewPCG(seed, 0x6465617468))
	d := &Death{
		Seed: seed, Accepts: rng.IntN(2) == 0, Step: rng.IntN(lastStep + 1), Node: rng.IntN(8) == 0, Beside: rng.IntN(2) == 0,
		Stopped: rng.IntN(3) > 0,
		After:   time.Duration(rng.IntN(3)*rng.IntN(400)) * time.Microsecond,
	}
	for d.notIts() {
		d.Step = rng.IntN(lastStep + 1)
	}
	for range 3 {
		n := 1 + rng.IntN(3)
		d.Worlds, d.Roots = append(d.Worlds, n), append(d.Roots, rng.IntN(n))
	}
	return d
}

// notIts tells whether the step is none of the root that dies: ports are opened and
// callers taken at one side, and calls made at the other.
func (d *Death) notIts() bool {
	if d.Accepts {
		return d.Step == 1 || d.Step == 2
	}
	return d.Step == 0 || d.Step == 4
}

func (d *Death) victim() int {
	if d.Accepts {
		return accepting
	}
	return connecting
}

// String is the case in one line.
func (d *Death) String() string {
	return fmt.Sprintf("worlds of %v procs, roots %v: that of %c dies %v after it came to step %d (stopped: %v, node: %v, others connected: %v)",
		d.Worlds, d.Roots, 'a'+d.victim(), d.After, d.Step, d.Stopped, d.Node, d.Beside)
}

// Run lets it happen, and says what is wrong.
func (d *Death) Run(trace int) *Verdict {
	c := Generate(d.Seed, Limits{Procs: DefaultProcs, Steps: DefaultSteps}) // its links
	c.Program = &Program{Worlds: d.Worlds}
	c.Sites = nil
	if d.Stopped { // it may be in the middle of lending
		c.Abroad.Link.Lend = 0
	}
	rng := rand.New(rand.NewPCG(d.Seed, 1))
	for _, n := range d.Worlds {
		c.Sites = append(c.Sites, sitesOf(rng, n))
	}
	return runWith(c, trace, func(x *execution) {
		x.death, x.part = d, (*rank).live
		victim := c.Program.first(d.victim()) + d.Roots[d.victim()]
		x.steps.reached = func(proc, step int) {
			if proc == victim && step == d.Step && !x.doomed {
				x.doomed = true
				x.k.After(d.After, func() { x.kill(victim) })
				if r := x.ranks[victim]; d.Stopped && r != nil && step != lastStep {
					r.freeze()
				}
			}
		}
	})
}

// kill ends a proc, and with it its world.
func (x *execution) kill(victim int) {
	w := x.program.worldOf(victim)
	side := "connect"
	if w == accepting {
		side = "accept"
	}
	f := job.Fault{Kind: job.CrashProc, Target: victim - x.program.first(w)}
	if x.death.Node {
		f = job.Fault{Kind: job.CrashNode}
	}
	x.cover[fmt.Sprintf("died in step %s %d", side, x.steps.at[victim])]++
	x.worlds[w].Strike(f)
	for i := range x.program.Worlds[w] {
		x.gone[x.program.first(w)+i] = true
	}
	if w == connecting && x.names["first"] != "" { // or nobody would call
		x.names["last"] = x.names["first"]
	}
}

// live is what each proc does.
func (r *rank) live() error {
	d, world := r.x.death, r.x.program.worldOf(r.me)
	survivor := accepting + connecting - d.victim()
	var beside *mpi.Comm
	if d.Beside && world != d.victim() {
		port, err := r.port("beside", world == survivor)
		if err != nil {
			return err
		}
		if beside, err = r.pair(port, world == survivor); err != nil {
			return failed(err)
		}
		if world == survivor && r.env.World().Rank() == r.root() {
			if err := r.mpi.ClosePort(port); err != nil {
				return failed(err)
			}
		}
	}
	if err := r.part(world, survivor); err != nil {
		return err
	}
	if beside != nil {
		if err := errors.Join(beside.Barrier(), beside.Disconnect()); err != nil {
			return fmt.Errorf("worlds that have nothing to do with it: %w", failed(err))
		}
	}
	return r.farewell()
}

// part is that of a world, but for what goes on beside.
func (r *rank) part(world, survivor int) error {
	switch world {
	case survivor:
		if survivor == connecting {
			if err := r.visit("first", false); err != nil {
				return err
			}
			return r.serve("last")
		}
		return r.serve("first")
	case third:
		return r.visit("last", true)
	case connecting:
		return r.visit("first", true)
	}
	port, err := r.port("first", true)
	if err != nil {
		return err
	}
	r.dally()
	c, err := r.pair(port, true)
	if err == nil {
		_, err = r.greet(c, true)
	}
	if err == nil {
		err = c.Disconnect()
	}
	if err == nil && r.env.World().Rank() == r.root() {
		err = r.mpi.ClosePort(port)
	}
	return failed(err)
}

// port opens a port at the world's root, or finds out which one goes by a name here.
func (r *rank) port(name string, open bool) (port string, err error) {
	if r.env.World().Rank() != r.root() {
		return "", nil
	}
	if open {
		port, err = r.mpi.OpenPort(nil)
		r.x.names[name] = port
		return port, failed(err)
	}
	for n := 0; r.x.names[name] == "" && !(name == "first" && r.x.gone[0]); n++ {
		r.idle(n)
	}
	return r.x.names[name], nil
}

// dally has callers wait.
func (r *rank) dally() {
	waited := r.x.abroad.Counts.Waited
	switch {
	case r.x.death.Step == 3 && r.env.World().Rank() == r.root():
		for n := 0; r.x.abroad.Counts.Waited == waited && n < 20; n++ {
			r.idle(n)
		}
	case r.x.death.Seed%3 == 0:
		r.env.Pause(r.x.between(5*time.Millisecond, 10*time.Millisecond))
	}
}

func (r *rank) root() int { return r.x.death.Roots[r.x.program.worldOf(r.me)] }

// pair is Accept or Connect of the world.
func (r *rank) pair(port string, accepts bool) (*mpi.Comm, error) {
	if accepts {
		return r.env.World().Accept(port, nil, r.root())
	}
	return r.env.World().Connect(port, nil, r.root())
}

// greet has each member of the accepting side talk to the first one of the other, who
// says of which world it is.
func (r *rank) greet(c *mpi.Comm, accepts bool) (who int, err error) {
	n, err := c.RemoteSize()
	if err != nil {
		return 0, err
	}
	me, in := []int64{int64(r.x.program.worldOf(r.me))}, []int64{0}
	if accepts {
		_, err = mpi.Sendrecv(c, me, 0, 1, in, 0, 1)
		return int(in[0]), err
	}
	for i := 0; i < n && c.Rank() == 0; i++ {
		_, e := mpi.Sendrecv(c, me, i, 1, in, i, 1)
		err = errors.Join(err, e)
	}
	return int(in[0]), err
}

// visit connects to a port, greets and leaves. It is an error if that fails and must not.
func (r *rank) visit(name string, must bool) error {
	port, err := r.port(name, false)
	if err != nil {
		return err
	}
	c, why := r.pair(port, false)
	r.x.note(0, r.me, len(name), c, why)
	if why == nil {
		_, why = r.greet(c, false)
	}
	if must {
		if why == nil {
			why = c.Disconnect()
		}
		return failed(why)
	}
	return r.leave(c, why)
}

// leave disconnects, and frees what that fails for. All members of the world do so,
// also those who know of no failure.
func (r *rank) leave(c *mpi.Comm, why error) error {
	if c != nil {
		if err := c.Disconnect(); why == nil && err == nil {
			return nil
		} else if err == nil {
			return fmt.Errorf("%w: Disconnect is good, where this had failed: %w", ErrResult, why)
		} else if why == nil {
			why = err
		}
	}
	return r.dispose(c, why)
}

// dispose frees a communicator, if there is one, with which something has failed.
func (r *rank) dispose(c *mpi.Comm, why error) error {
	class := mpi.ErrorClass(why)
	r.x.cover["class "+class.String()]++
	switch {
	case !r.x.doomed:
		return fmt.Errorf("nobody has died: %w", failed(why))
	case class != mpierr.Port && class != mpierr.ProcAborted:
		return fmt.Errorf("%w: class %v of: %w", ErrResult, class, why)
	case c == nil:
		return nil
	}
	return failed(c.Free())
}

// serve accepts at a port until the third world has come. Who comes before may die at
// any time.
func (r *rank) serve(name string) error {
	port, err := r.port(name, true)
	if err != nil {
		return err
	}
	r.dally()
	for attempt, who := 0, -1; who != third; attempt++ {
		c, err := r.pair(port, true)
		r.x.note(attempt, r.me, 0, c, err)
		r.x.names["last"] = r.x.names[name]
		if who, err = r.served(c, err); err != nil {
			return err
		}
	}
	if r.env.World().Rank() == r.root() {
		return failed(r.mpi.ClosePort(port))
	}
	return nil
}

// served sees to those who have come, if they have, and tells all members who it was.
func (r *rank) served(c *mpi.Comm, why error) (who int, err error) {
	who = -1
	if why == nil {
		who, why = r.greet(c, true)
	}
	mine, all := []int64{int64(who), 0}, []int64{0, 0}
	if why != nil {
		mine[1] = 1
	}
	if err := mpi.Allreduce(r.env.World(), mine, all, mpi.Max); err != nil {
		return 0, fmt.Errorf("one's own world: %w", failed(err))
	}
	if who = int(all[0]); who != third {
		return who, r.leave(c, why)
	}
	if all[1] == 0 {
		why = c.Disconnect()
	}
	return who, failed(why)
}

// survived judges how those worlds have ended that did not die.
func (x *execution) survived(all []job.Result) (oracle string, err error) {
	if !x.doomed {
		return "case", errors.New("nobody died")
	}
	for w, r := range all {
		if w == x.death.victim() && r.Struck {
			continue
		}
		if err := errors.Join(append(append(r.Procs(), r.Sites()...), r.Server(), r.Err)...); err != nil {
			return "survivors", fmt.Errorf("world %c: %w", 'a'+w, err)
		}
	}
	return "", nil
}

var _ job.CallObserver = (*steps)(nil)
var _ kernel.Watcher = (*callWatch)(nil)
