package script

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

type runner struct {
	a     *lives
	env   Env
	rec   *Record
	among MeetingEnv // env, if there are several worlds; else nil
	me    int        // number of the proc
	step  int        // the step of the program that is under way
	comms *comms     // communicators, as in the model
	open  map[string]*mpi.Comm
	reqs  map[Req]*pending
	slots [2]map[int]*pending
	idups map[string]idup // by the communicators that the Idups make
}

type idup struct {
	c   *mpi.Comm
	req mpi.Request
}

type pending struct {
	req mpi.Request
	buf vector
}

// Run executes one rank's part of a legal program and records the results in rec. It blocks until
// the part is done; the caller finalizes MPI. The error wraps ErrMPI, ErrMismatch or ErrIllegal,
// and names rank and step. After an error the rank may have requests under way.
func Run(p *Program, env Env, rec *Record) error {
	a, err := check(p)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrIllegal, err)
	}
	world := env.World()
	r := &runner{
		a: a, env: env, rec: rec, me: world.Rank(), step: -1, comms: p.comms(),
		open: map[string]*mpi.Comm{}, reqs: map[Req]*pending{}, slots: [2]map[int]*pending{{}, {}}, idups: map[string]idup{},
	}
	if r.comms.several() {
		r.among, _ = env.(MeetingEnv)
		if r.among == nil {
			return fmt.Errorf("%w: several worlds, in an Env of one", ErrIllegal)
		}
		r.me = r.among.Number()
		r.open[r.comms.title(r.me)] = r.among.MPI().Self()
	}
	rec.Rank = r.me
	home, _ := r.comms.worldOf(r.me)
	r.open[r.comms.all[home].name] = world
	if err := r.enter(r.comms.all[home], world); err != nil {
		return fmt.Errorf("rank %d: %w", r.me, err)
	}
	for i, s := range p.Steps {
		r.step = i
		rec.Begun = i + 1
		if err := r.do(s); err != nil {
			return fmt.Errorf("rank %d, step %d, %s: %w", r.me, i+1, lineOf(s), err)
		}
	}
	rec.Begun = len(p.Steps) + 1                             // the last step is done
	if _, losses := p.Recover(); r.among != nil && !losses { // with lost procs nobody can disconnect
		if err := (&meeter{r}).settle(); err != nil {
			return fmt.Errorf("rank %d: %w", r.me, err)
		}
	}
	rec.Ended = true
	return nil
}

// shown formats a step, only if it is printed.
type shown struct{ Step }

func (s shown) String() string { return lineOf(s.Step) }

func (r *runner) log(s Step) { r.env.Log("step %d: %s", r.step+1, shown{s}) }

func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrMPI, err)
}

func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMismatch, fmt.Sprintf(format, args...))
}

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
	case Dup, Split, Cart, CartSub, Free, Meet, Spawn, Idup, Finish, Merge, Intercomm, Disconnect:
		return r.construct(s)
	case Death:
		return (&survivor{meeter: meeter{r}, d: s}).live()
	case Recover:
		return (&recovering{meeter{r}, s}).live()
	case Fail:
		return (&meeter{r}).fail()
	case Window:
		return r.window(s)
	}
	return r.alone(s)
}

func (r *runner) alone(s Step) error {
	rank, f := never, func() error { return nil }
	switch s := s.(type) {
	case Unmatched:
		rank, f = s.Rank, func() error { return r.unmatched(s) }
	case Null:
		rank, f = s.Rank, func() error { return r.null(s) }
	case Pause:
		rank, f = s.Rank, func() error { r.env.Pause(s.For); return nil }
	case Attach:
		rank, f = s.Rank, func() error { return failed(attach(r.env, s.Size)) }
	case Detach:
		rank, f = s.Rank, func() error { return detach(r.env) }
	case OpenPort:
		rank, f = s.Rank, func() error { return (&meeter{r}).openPort(s.Port) }
	case ClosePort:
		rank, f = s.Rank, func() error { return (&meeter{r}).closePort(s.Port) }
	default:
		if asker, ok := service(s); ok && asker == r.me {
			return (&meeter{r}).service(s)
		}
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

// again calls f until it is done, with growing pauses, like a program that has other work to do.
func (r *runner) again(f func() (done bool, err error)) error {
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if done, err := f(); done || err != nil {
			return err
		}
		r.env.Pause(pause)
	}
}

// comm returns the communicator of a message, and the rank of the message's other side in it.
func (r *runner) comm(name string, other int) (c *mpi.Comm, rank int) {
	return r.open[name], r.comms.byName[name].rank(other)
}

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
	t := s.trialIn(g, r.me)
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

// OrderChecker may be implemented by an Env whose ranks share one thread. Run then checks that no
// rank gets past a barrier, or completes a synchronous send, before the ranks that it must wait for
// have come. The results of operations do not show that.
type OrderChecker interface {
	// Begun returns the number of steps that a rank has begun or skipped: its Record's Begun.
	Begun(rank int) int
}

// has reports whether a rank has come to a step; true if there is no OrderChecker.
func (r *runner) has(rank, step int) bool {
	w, ok := r.env.(OrderChecker)
	return !ok || w.Begun(rank) > step
}

// gathered checks, after a barrier, that all members have come to it.
func (r *runner) gathered(g *group) error {
	for _, rank := range g.partners(r.me) {
		if !r.has(rank, r.step) {
			return mismatch("rank %d is past the barrier, and rank %d has not come to it", r.me, rank)
		}
	}
	return nil
}

// matched checks, after a synchronous send, that a receive that may get the message has been
// started.
func (r *runner) matched(m *Message) error {
	if m.Mode != Synchronous {
		return nil
	}
	l := r.a.byID[m.ID]
	first := l.recvStart
	if l.family.wild() {
		for _, o := range l.family.recvs {
			first = min(first, o.recvStart)
		}
	}
	if !r.has(m.To, first) {
		return mismatch("the synchronous send of message %d is complete, and rank %d has not started a receive for it", m.ID, m.To)
	}
	return nil
}
