package script

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// runner is one rank that executes a program.
type runner struct {
	a     *lives
	env   Env
	rec   *Record
	me    int    // rank in World
	step  int    // of the program, that is under way
	comms *comms // as the model has them
	open  map[string]*mpi.Comm
	reqs  map[Req]*pending
	slots [2]map[int]*pending
}

// pending is a request and its buffer.
type pending struct {
	req mpi.Request
	buf vector
}

// Run executes one rank's part of a legal program and notes in rec what comes of
// it. It blocks until the part is done, and leaves it to the caller to finalize
// MPI. The error wraps ErrMPI, ErrMismatch or ErrIllegal, and names rank and step.
// After an error the rank may have requests under way.
func Run(p *Program, env Env, rec *Record) error {
	a, err := check(p)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrIllegal, err)
	}
	world := env.World()
	r := &runner{
		a: a, env: env, rec: rec, me: world.Rank(), step: -1, comms: newComms(p.Procs),
		open: map[string]*mpi.Comm{World: world}, reqs: map[Req]*pending{},
		slots: [2]map[int]*pending{{}, {}},
	}
	rec.Rank = r.me
	if err := r.enter(r.comms.all[0], world); err != nil {
		return fmt.Errorf("rank %d: %w", r.me, err)
	}
	for i, s := range p.Steps {
		r.step = i
		rec.Begun = i + 1
		if err := r.do(s); err != nil {
			return fmt.Errorf("rank %d, step %d, %s: %w", r.me, i+1, lineOf(s), err)
		}
	}
	rec.Ended = true
	return nil
}

// shown prints as a step's text, if at all.
type shown struct{ Step }

func (s shown) String() string { return lineOf(s.Step) }

func (r *runner) log(s Step) { r.env.Log("step %d: %s", r.step+1, shown{s}) }

// failed says that MPI has failed.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrMPI, err)
}

func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMismatch, fmt.Sprintf(format, args...))
}

// do does this rank's part of a step.
func (r *runner) do(s Step) error {
	switch s := s.(type) {
	case Start:
		return r.start(s)
	case Exchange:
		return r.exchange(s)
	case Wait:
		return r.wait(s)
	case Cancel:
		return r.cancel(s)
	case Collective:
		return r.collective(s)
	case Dup, Split, Cart, CartSub, Free:
		return r.construct(s)
	case Window:
		return r.window(s)
	}
	return r.alone(s)
}

// alone does a step of one rank.
func (r *runner) alone(s Step) error {
	rank, f := never, func() error { return nil }
	switch s := s.(type) {
	case Lone:
		rank, f = s.Rank, func() error { return r.lone(s) }
	case Null:
		rank, f = s.Rank, func() error { return r.null(s) }
	case Pause:
		rank, f = s.Rank, func() error { r.env.Pause(s.For); return nil }
	case Attach:
		rank, f = s.Rank, func() error { return failed(attach(r.env, s.Size)) }
	case Detach:
		rank, f = s.Rank, func() error { return detach(r.env) }
	}
	if rank != r.me {
		return nil
	}
	r.log(s)
	return f()
}

func attach(env Env, size int) error {
	if b, ok := env.(Buffers); ok {
		return b.BufferAttach(size)
	}
	return mpi.BufferAttach(size)
}

func detach(env Env) error {
	if b, ok := env.(Buffers); ok {
		_, err := b.BufferDetach()
		return failed(err)
	}
	_, err := mpi.BufferDetach()
	return failed(err)
}

// again calls f until it says that it is done, with pauses that grow, as a
// program that has something else to do meanwhile.
func (r *runner) again(f func() (done bool, err error)) error {
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if done, err := f(); done || err != nil {
			return err
		}
		r.env.Pause(pause)
	}
}

// comm is the communicator of a message and the rank in it of its other side.
func (r *runner) comm(name string, other int) (c *mpi.Comm, rank int) {
	return r.open[name], r.comms.byName[name].rank(other)
}

// wanted is what the receive of m asks for.
func (r *runner) wanted(m *Message) (c *mpi.Comm, source, tag int) {
	c, source = r.comm(m.Comm, m.From)
	tag = m.Tag
	if m.AnySource {
		source = mpi.AnySource
	}
	if m.AnyTag {
		tag = mpi.AnyTag
	}
	return c, source, tag
}

func (r *runner) collective(s Collective) error {
	g := r.comms.byName[s.Comm]
	if !g.has(r.me) {
		return nil
	}
	r.log(s)
	n, me, root := s.in(g, r.me)
	t := s.trial(n, me, root)
	if err := t.send.collective(r.open[s.Comm], &s, t.recv, root, t.layout); err != nil {
		return failed(err)
	}
	if s.Call == Barrier {
		return r.gathered(g)
	}
	if t.out == nil {
		return nil
	}
	r.rec.Results = append(r.rec.Results, Result{r.step, t.out.sum(t.out.size())})
	if d := t.out.differs(t.want); d != "" {
		return mismatch("the result at rank %d of %d: %s", me, n, d)
	}
	return nil
}
