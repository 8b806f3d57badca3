package collective

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/native"
)

// bigStep is the size in bytes from which local work is done without the lock, so that other
// goroutines can communicate meanwhile.
const bigStep = 32 << 10

// collective is one operation under way: a schedule and the messages of its
// current round. Its process is locked when it is used.
type collective struct {
	proc.Uncancellable
	c        *proc.Comm
	number   uint32
	sched    *coll.Schedule // the schedule under way: main, or the comparison before it
	main     coll.Schedule
	checking *checking    // sched is the check before main
	after    func() error // called once main has been executed; it may plan another schedule into main
	open     []part
	team     *proc.NativeComm // of a blocking operation in which the site's MPI takes part, or nil
	phase    native.Phase     // phase in the site's MPI, while inPhase is set
	inPhase  bool
	cause    error // an error after which only the phases that are left are done, see setAside
	Err      error
	ended    bool
	begun    bool // something was sent or received
	busy     bool // a goroutine works for it without the lock
}

// part is one message of the current round. A receive expects exactly want bytes: unlike other
// receives it may not get fewer (MPI-4.1, 6.1).
type part struct {
	r    *message.Request
	want int
	peer wire.CommRank
}

// CollectivePlanner returns the planner of the communicator, made at the first call.
func CollectivePlanner(c *proc.Comm) *coll.Planner {
	c.State().Colls.Once.Do(func() {
		profile := coll.Profile{AllImpi: true}
		profile.XSize, profile.MaxLinear = c.CollectiveLimits()
		profile.Tuning.Direct, profile.Tuning.DirectLong = proc.DirectLimits(c)
		describePeers(c, &profile, c.Masters(), c.Comm.Group())
		if !closeBy(c) {
			profile.Hosts = c.Process().Members.Hosts()
		}
		if !c.Inter() {
			c.State().Colls.Planner = coll.NewPlanner(c.Comm, profile)
		} else {
			m := comm.NewMasters(c.Comm.Remote(), c.Process().Worlds.Clients())
			describePeers(c, &profile, m, c.Comm.Remote())
			c.State().Colls.Planner = coll.NewInterPlanner(c.Comm, m, profile)
		}
		c.State().Colls.AllImpi = profile.AllImpi
	})
	return c.State().Colls.Planner
}

// closeBy reports whether the members of this proc's client are few and on one machine, so that
// operations need not be done host by host. All of them get the same answer.
func closeBy(c *proc.Comm) bool {
	team := c.Masters().Locals(c.Masters().Number(c.Rank()))
	if team.Size() > coll.MaxFlatProcs {
		return false
	}
	job := c.Process().Job
	own := job.Proc(wire.WorldRank(c.Self()))
	for rank := range team.All() {
		member, _ := c.Comm.Group().At(int(rank))
		if !proc.SameMachine(job.Proc(wire.WorldRank(member)), own) {
			return false
		}
	}
	return true
}

func describePeers(c *proc.Comm, profile *coll.Profile, m *comm.Masters, group *comm.Group) {
	own := c.ClientOf(c.Self())
	for n := range m.Count() {
		proc, _ := group.At(m.Rank(n))
		client := int(m.Client(n))
		for len(profile.Clients) <= client {
			profile.Clients = append(profile.Clients, coll.Peer{Rep: datatype.External32})
		}
		profile.Clients[client] = coll.Peer{
			Rep:                  c.Process().Data.DataOf(message.Peer(proc)),
			ReduceOnPointToPoint: c.Process().Worlds.ProcOf(proc).ReduceOnPointToPoint,
		}
		if m.Client(n) != own && c.Process().Worlds.ForeignClient(m.Client(n)) {
			profile.AllImpi = false
		}
	}
}

// Begin returns a collective to plan into, with its number among the operations of c.
func Begin(c *proc.Comm) (*collective, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	if c.State().Revoked.Load() {
		return nil, proc.RevokedError(c)
	}
	CollectivePlanner(c)
	c.State().Colls.Mu.Lock()
	defer c.State().Colls.Mu.Unlock()
	var x *collective
	if n := len(c.State().Colls.Free); n > 0 {
		x = c.State().Colls.Free[n-1].(*collective)
		c.State().Colls.Free = c.State().Colls.Free[:n-1]
		x.ended = false
	} else {
		x = &collective{c: c}
		x.sched = &x.main
	}
	c.Process().Native.Count(c)
	x.number = uint32(c.State().Colls.Next()) // counted even if the operation fails here, so that all members count the same
	if !c.State().Colls.AllImpi {
		c.State().Colls.Ordered = append(c.State().Colls.Ordered, x)
	}
	return x, nil
}

// Collective plans an operation, executes it and blocks until it is done here.
func Collective(c *proc.Comm, plan func(*coll.Planner, *coll.Schedule) error) error {
	x, err := Begin(c)
	if err != nil {
		return err
	}
	return x.run(plan(c.State().Colls.Planner, &x.main))
}

// run executes what was planned and blocks until it is done here. planned is
// the planner's error.
func (x *collective) run(planned error) error {
	p := x.c.Process()
	p.Lock()
	defer p.Unlock()
	x.Err = planned
	for !x.Done() && p.Failure == nil {
		p.Account.AwaitFor(proc.ForCollective, x.missing())
	}
	_, err := x.Finish()
	return err
}

// missing returns a peer whose message the operation waits for, or who has not taken one; NoPeer if
// there is none.
func (x *collective) missing() message.Peer {
	for _, receives := range []bool{true, false} {
		for i := range x.open {
			if r := x.open[i].r; r != nil && !r.Done() {
				if in, peer := r.Side(); in == receives {
					return peer
				}
			}
		}
	}
	return message.NoPeer
}

// start begins to execute what was planned, as a background operation, and returns its request.
func (x *collective) start(fn string, planned error) (proc.Request, error) {
	p := x.c.Process()
	p.Lock()
	defer p.Unlock()
	x.Err = planned
	if x.Err != nil {
		_, err := x.Finish()
		return proc.Request{}, err
	}
	p.Background.Dispatch(x)
	return p.NewOperationRequest(x.c, fn, x), nil
}

// CarryOn implements proc.BackgroundOp.
func (x *collective) CarryOn() (over bool) { return x.Done() }

func (x *collective) over() bool { return x.ended || x.Err != nil }

// Done continues the operation as far as possible without waiting, and reports whether it is over.
func (x *collective) Done() bool {
	if x.busy || !x.over() && !x.begun && !x.first() {
		return false
	}
	for !x.over() {
		if !x.collect() {
			return false
		}
		x.setAside()
		if x.Err != nil {
			break
		}
		steps, err := x.sched.Next()
		switch x.Err = err; {
		case err == nil && len(steps) == 0 && x.cause == nil:
			x.next()
		case len(steps) == 0 && x.cause != nil:
			x.Err = x.cause
		}
		for i := range steps {
			if x.Err == nil && (x.cause == nil || steps[i].Action == coll.Joint) {
				x.Err = x.do(&steps[i])
				x.setAside()
			}
		}
	}
	x.leave()
	return true
}

// setAside keeps an error until the phases that are left are done. The other members of the team
// take part in these; without this one, its next operation would meet them in the site's MPI.
func (x *collective) setAside() {
	if x.Err != nil && x.team != nil {
		x.Err, x.cause = nil, cmp.Or(x.cause, x.Err)
	}
}

// next goes on after a schedule has been executed: with main after a comparison, or with the end.
func (x *collective) next() {
	if x.checking != nil {
		x.Err = x.checked()
		return
	}
	if x.after != nil {
		after := x.after
		x.after = nil
		x.Err = after()
		if x.after != nil {
			return
		}
	}
	x.ended = true
}

// first reports whether it is the operation's turn: with members that run another library,
// operations are executed one after the other.
func (x *collective) first() bool {
	cs := &x.c.State().Colls
	if cs.AllImpi {
		return true
	}
	cs.Mu.Lock()
	defer cs.Mu.Unlock()
	return len(cs.Ordered) == 0 || cs.Ordered[0] == proc.BackgroundOp(x)
}

func (x *collective) leave() {
	cs := &x.c.State().Colls
	if cs.AllImpi {
		return
	}
	cs.Mu.Lock()
	defer cs.Mu.Unlock()
	if i := slices.Index(cs.Ordered, proc.BackgroundOp(x)); i >= 0 {
		cs.Ordered = slices.Delete(cs.Ordered, i, i+1)
		if len(cs.Ordered) > 0 {
			x.c.Process().WakeAll()
		}
	}
}

// collect collects the round's phase and messages that are done. It reports whether all are done,
// or the operation has failed.
func (x *collective) collect() bool {
	if x.inPhase {
		done, err := x.phase.Done()
		if !done {
			return false
		}
		if x.inPhase, x.Err = false, err; err != nil {
			return true
		}
	}
	if x.cause != nil {
		return true // Finish cancels the messages
	}
	for n := len(x.open) - 1; n >= 0; n-- {
		o := x.open[n]
		if !o.r.Done() {
			return false
		}
		st := o.r.Status()
		x.c.Process().Eng.Release(o.r)
		x.open = x.open[:n]
		switch {
		case st.Err != nil:
			x.Err = fmt.Errorf("rank %d: %w", o.peer, st.Err)
		case o.want >= 0 && st.Len != int64(o.want):
			x.Err = fmt.Errorf("%w: rank %d sent %d bytes, %d are expected", coll.ErrCount, o.peer, st.Len, o.want)
		default:
			continue
		}
		return true
	}
	return true
}

func (x *collective) do(t *coll.Step) error {
	if t.Local() {
		if len(t.Dst) < bigStep {
			return t.Run()
		}
		if t.Action == coll.Copy && disjoint(t.Dst, t.Src) {
			return x.outside(func() error {
				copyBlock(t.Dst, t.Src)
				return nil
			})
		}
		return x.outside(t.Run)
	}
	x.begun = true
	if t.Action == coll.Joint {
		return x.beginPhase(t)
	}
	p := x.c.Process()
	proc, _ := x.c.Comm.Proc(int(t.Peer))
	if t.Remote {
		proc, _ = x.c.Comm.Partner(int(t.Peer))
	}
	peer, tag := message.Peer(proc), t.Tag
	if x.c.State().Colls.AllImpi {
		tag = coll.StepTag(tag, x.number)
	}
	if t.Action == coll.Recv {
		r := p.Eng.Recv(message.Envelope{Context: t.Context, Rank: t.Peer, Tag: tag}, peer, t.Dst)
		x.open = append(x.open, part{r, len(t.Dst), t.Peer})
		return nil
	}
	env := message.Envelope{Context: t.Context, Rank: wire.CommRank(x.c.Comm.Rank()), Tag: tag}
	r := p.Eng.Send(peer, env, message.Standard, t.Src, int64(len(t.Src)), uint64(t.Kind))
	p.Endpoints.Send(peer, len(t.Src), true)
	x.open = append(x.open, part{r, -1, t.Peer})
	return nil
}

func disjoint(a, b []byte) bool {
	from, to := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return from+uintptr(len(a)) <= to || to+uintptr(len(b)) <= from
}

// outside does work without the process's lock.
func (x *collective) outside(work func() error) error {
	p := x.c.Process()
	x.busy = true
	p.Unlock()
	defer func() {
		p.Lock()
		x.busy = false
		p.WakeAll() // goroutines that wait for the operation have found it busy
	}()
	return work()
}

// Status returns the result of Finish.
func (x *collective) Status() (proc.Status, error) { return proc.EmptyStatus, x.Err }

// Finish returns the result of the operation, and keeps its memory for the next one.
func (x *collective) Finish() (proc.Status, error) {
	err := x.Err
	if err == nil && !x.ended {
		err = x.c.Process().Failure
	}
	x.leave()
	x.Gen++
	x.ended = true
	if err != nil && x.begun {
		x.abandon() // messages that are under way may still be received into its memory
		return proc.EmptyStatus, err
	}
	x.main.Reset()
	x.sched, x.checking, x.after, x.team = &x.main, nil, nil, nil
	x.Err, x.cause, x.ended, x.begun = nil, nil, true, false // ended, since it may still be in the process's list of background operations
	x.c.State().Colls.Mu.Lock()
	defer x.c.State().Colls.Mu.Unlock()
	x.c.State().Colls.Free = append(x.c.State().Colls.Free, x)
	return proc.EmptyStatus, err
}

// abandon cancels the messages that are still under way, as far as possible.
func (x *collective) abandon() {
	p := x.c.Process()
	for _, o := range x.open {
		for p.Survival != nil && !o.r.Done() && p.Failure == nil && p.Eng.Failed(o.r.Context()) != nil {
			p.AwaitProgress() // a link still has data of the program's
		}
		x.c.Process().Eng.Cancel(o.r)
		x.c.Process().Eng.Release(o.r)
	}
	x.open = nil
}
