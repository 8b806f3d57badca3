package worlds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/job"
)

// What procs find wrong.
var (
	// ErrResult is wrapped when a proc gets something else than it must.
	ErrResult = errors.New("wrong result")
	// ErrContexts is wrapped when a proc gets a context ID twice.
	ErrContexts = errors.New("a context ID twice")
	// ErrLeak is wrapped when something is left of worlds that were left.
	ErrLeak = errors.New("something is left")
	// ErrMPI is wrapped when a call fails that must not.
	ErrMPI = errors.New("MPI has failed")
)

// rank is a proc that runs its part of a program.
type rank struct {
	x      *execution
	env    job.Env
	mpi    *mpi.Proc
	freeze func() bool
	me     int
	op     int // that is under way
	comms  map[int]*mpi.Comm
	idups  map[int]*idup
	had    []span // context IDs of all its communicators, past and present
}

// span is context IDs from lo to below hi.
type span struct {
	lo, hi wire.ContextID
	comm   int
}

type idup struct {
	c   *mpi.Comm
	req mpi.Request
}

// proc is what a proc of package job can do beside its Env.
type proc interface {
	job.Env
	MPI() *mpi.Proc
	Freeze() bool
}

func (x *execution) newRank(env proc, me int) *rank {
	r := &rank{
		x: x, env: env, freeze: env.Freeze, mpi: env.MPI(), me: me, idups: map[int]*idup{},
		comms: map[int]*mpi.Comm{x.program.worldOf(me): env.World(), len(x.program.Worlds) + me: env.MPI().Self()},
		had:   []span{{comm.WorldContext, comm.SelfContext + comm.IntraContexts, -1}},
	}
	return r
}

// run does the proc's part of the program.
func (r *rank) run() error {
	for i, o := range r.x.program.Ops {
		r.op = i
		if !r.concerns(o) {
			continue
		}
		r.env.Log("%s: step %d: %v", r.x.name(r.me), i+1, o)
		if err := r.do(o); err != nil {
			return fmt.Errorf("%s, step %d, %v: %w", r.x.name(r.me), i+1, o, err)
		}
		r.x.cover["ops "+o.Kind.String()]++
	}
	return r.farewell()
}

// concerns tells whether the proc takes part in an operation.
func (r *rank) concerns(o Op) bool {
	has := func(n int) bool { return r.x.groups[n].has(r.me) }
	switch o.Kind {
	case Talk:
		return slices.ContainsFunc(o.Comms, has)
	case Meet, Join:
		return has(o.Comm) || has(o.With)
	default:
		return has(o.Comm)
	}
}

func (r *rank) do(o Op) error {
	c := r.comms[o.Comm]
	switch o.Kind {
	case Meet:
		d, err := r.meet(o)
		return r.enter(o.New[0], d, err)
	case Dup:
		d, err := c.Dup()
		return r.enter(o.New[0], d, err)
	case Idup:
		d, req, err := c.Idup()
		r.idups[o.New[0]] = &idup{d, req}
		return failed(err)
	case Finish:
		d := r.idups[o.New[0]]
		delete(r.idups, o.New[0])
		_, err := d.req.Wait()
		return r.enter(o.New[0], d.c, err)
	case Split:
		return r.split(o, c)
	case Merge:
		low := slices.Contains(r.x.groups[o.Comm].members, r.me)
		d, err := c.Merge(low == o.High)
		return r.enter(o.New[0], d, err)
	case Join:
		d, err := r.join(o)
		return r.enter(o.New[0], d, err)
	case Free:
		delete(r.comms, o.Comm)
		return failed(c.Free())
	case Disconnect:
		delete(r.comms, o.Comm)
		return failed(c.Disconnect())
	case Talk:
		return r.talk(o)
	case Sum:
		return r.sum(o, c)
	case Pause:
		r.env.Pause(r.x.between(0, 3*time.Millisecond))
	case kinds:
	}
	return nil
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrMPI, err)
}

// meet is the proc's part of Accept or Connect. The port's name gets from one root
// to the other beside MPI.
func (r *rank) meet(o Op) (*mpi.Comm, error) {
	if accept := r.comms[o.Comm]; accept != nil && slices.Contains(r.x.groups[o.Comm].members, r.me) {
		return r.accept(o, accept)
	}
	connect, port := r.comms[o.With], ""
	if connect.Rank() == o.WithRoot {
		port = r.portOf(o)
	}
	return connect.Connect(port, nil, o.WithRoot)
}

func (r *rank) accept(o Op, c *mpi.Comm) (*mpi.Comm, error) {
	if c.Rank() != o.Root {
		return c.Accept("", nil, o.Root)
	}
	port, err := r.mpi.OpenPort(nil)
	if err != nil {
		return nil, err
	}
	r.x.ports[r.op] = port
	if o.Late {
		r.env.Pause(r.x.between(0, 5*time.Millisecond))
	}
	d, err := c.Accept(port, nil, o.Root)
	return d, errors.Join(err, r.mpi.ClosePort(port))
}

// portOf waits until the port of an operation is open. MPI makes progress meanwhile.
func (r *rank) portOf(o Op) string {
	opener := r.x.groups[o.Comm].members[o.Root]
	for n := 0; r.x.ports[r.op] == "" && !r.x.dead(opener); n++ {
		r.idle(n)
	}
	return r.x.ports[r.op]
}

// idle lets some time go by in which MPI makes progress, more of it the more often it
// was called before.
func (r *rank) idle(before int) {
	r.env.Pause(20 * time.Microsecond << min(before, 8))
	_, _, _ = mpi.Iprobe(r.mpi.Self(), mpi.AnySource, mpi.AnyTag) // of what it does beside
}

// split is Split, after which each colour has one.
func (r *rank) split(o Op, c *mpi.Comm) error {
	color := o.Colors[c.Rank()]
	key := o.Keys[c.Rank()]
	if color < 0 {
		d, err := c.Split(mpi.Undefined, key)
		if err == nil && d != nil {
			err = fmt.Errorf("%w: a communicator without a color", ErrResult)
		}
		return failed(err)
	}
	d, err := c.Split(color, key)
	return r.enter(o.New[color], d, err)
}

// join is IntercommCreate.
func (r *rank) join(o Op) (*mpi.Comm, error) {
	a, b := r.x.groups[o.Comm], r.x.groups[o.With]
	own, other, root, with := a, b, o.Root, o.WithRoot
	if !slices.Contains(a.members, r.me) {
		own, other, root, with = b, a, o.WithRoot, o.Root
	}
	c := r.comms[own.number]
	if c.Rank() != root {
		return c.IntercommCreate(root, nil, 0, r.op)
	}
	leader := slices.Index(r.x.groups[o.Peer].partners(r.me), other.members[with])
	return c.IntercommCreate(root, r.comms[o.Peer], leader, r.op)
}

// enter notes a new communicator, or why there is none, and looks whether it is what
// it must be.
func (r *rank) enter(number int, c *mpi.Comm, err error) error {
	if err == nil && c == nil {
		err = fmt.Errorf("%w: neither communicator nor error", ErrResult)
	}
	r.x.note(r.op, r.me, number, c, err)
	if err != nil {
		return failed(err)
	}
	r.comms[number] = c
	g := r.x.groups[number]
	own, other := g.sides(r.me)
	n := comm.IntraContexts
	if g.inter() {
		n = comm.InterContexts
		if size, err := c.RemoteSize(); err != nil || size != len(other) {
			return fmt.Errorf("%w: a remote group of %d, want %d: %w", ErrResult, size, len(other), err)
		}
	}
	if c.Size() != len(own) || c.Rank() != slices.Index(own, r.me) || c.Inter() != g.inter() {
		return fmt.Errorf("%w: rank %d of %d, want %d of %d", ErrResult, c.Rank(), c.Size(), slices.Index(own, r.me), len(own))
	}
	return r.claim(span{c.Context(), c.Context() + wire.ContextID(n), number})
}

// claim notes context IDs that nothing else of this proc may have, now or ever.
func (r *rank) claim(s span) error {
	if s.lo >= comm.ContextLimit {
		r.x.cover["private contexts"]++
	} else {
		r.x.cover["agreed contexts"]++
	}
	for _, h := range r.had {
		if s.lo < h.hi && h.lo < s.hi {
			return fmt.Errorf("%w: communicator %d has %#x to %#x, and communicator %d has or had %#x to %#x",
				ErrContexts, s.comm, uint64(s.lo), uint64(s.hi-1), h.comm, uint64(h.lo), uint64(h.hi-1))
		}
	}
	r.had = append(r.had, s)
	return nil
}

// sum is an Allreduce of the members' numbers: of the other side's, if there are two.
func (r *rank) sum(o Op, c *mpi.Comm) error {
	got, want := []int64{0}, int64(0)
	for _, proc := range r.x.groups[o.Comm].partners(r.me) {
		want += int64(1) << (4 * proc)
	}
	if err := mpi.Allreduce(c, []int64{1 << (4 * r.me)}, got, mpi.Sum); err != nil {
		return failed(err)
	}
	if got[0] != want {
		return fmt.Errorf("%w: the sum is %#x, want %#x", ErrResult, got[0], want)
	}
	return nil
}

// settling is how long it may take until nothing is left of those who were left.
const settling = 30 * time.Second

// farewell waits until nothing is left of other worlds.
func (r *rank) farewell() error {
	begun := r.x.k.Now()
	for n := 0; r.mpi.Remains() != (mpi.Remains{}); n++ {
		if r.x.k.Now()-begun > settling {
			var b strings.Builder
			r.mpi.Dump(&b)
			return fmt.Errorf("%s: %w: %v\n%s", r.x.name(r.me), ErrLeak, r.mpi.Remains(), b.String())
		}
		r.idle(n)
	}
	return nil
}
