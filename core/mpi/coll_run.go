package mpi

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// bigStep is how many bytes of local work are done without the lock, so that
// other goroutines can communicate meanwhile.
const bigStep = 32 << 10

// collective is one operation under way: a schedule and the messages of its
// current round. Its process is locked when it is used.
type collective struct {
	steady
	c        *Comm
	number   uint32
	sched    *coll.Schedule // main, or one that comes before it
	main     coll.Schedule
	checking *checking    // sched is the check before main
	after    func() error // called once main has been executed; it may plan into main again
	open     []part
	err      error
	ended    bool
	begun    bool // something was sent or received
	busy     bool // somebody works for it without the lock
}

// part is one message of the round. A receive expects exactly want bytes.
type part struct {
	r    *message.Request
	want int
	peer wire.CommRank
}

// collectivePlanner makes the plan of the communicator's clients at the first
// collective.
func (c *Comm) collectivePlanner() *coll.Planner {
	c.colls.once.Do(func() {
		profile := coll.Profile{Ours: true}
		profile.XSize, profile.MaxLinear = c.collectiveLimits()
		c.describePeers(&profile, c.Masters(), c.Comm.Group())
		if !c.closeBy() {
			profile.Tuning.Few = -1
		}
		if !c.Inter() {
			c.colls.planner = coll.NewPlanner(c.Comm, profile)
		} else {
			m := comm.NewMasters(c.Comm.Remote(), c.p.clients())
			c.describePeers(&profile, m, c.Comm.Remote())
			c.colls.planner = coll.NewInterPlanner(c.Comm, m, profile)
		}
		c.colls.ours = profile.Ours
	})
	return c.colls.planner
}

// closeBy tells whether the members of this proc's client, if they are few, are on
// one machine. All of them come to the same answer.
func (c *Comm) closeBy() bool {
	team := c.Masters().Locals(c.Masters().Number(c.Rank()))
	if team.Size() > coll.MaxFew {
		return false
	}
	procs := c.p.job.Procs
	for rank := range team.All() {
		proc, _ := c.Comm.Group().At(int(rank))
		if !sameMachine(&procs[proc], &procs[c.Self()]) {
			return false
		}
	}
	return true
}

// describePeers enters into the profile the clients of a group.
func (c *Comm) describePeers(profile *coll.Profile, m *comm.Masters, group *comm.Group) {
	own := c.ClientOf(c.Self())
	for n := range m.Count() {
		proc, _ := group.At(m.Rank(n))
		client := int(m.Client(n))
		for len(profile.Clients) <= client {
			profile.Clients = append(profile.Clients, coll.Peer{Rep: datatype.External32})
		}
		profile.Clients[client] = coll.Peer{
			Rep:                  c.p.dataOf(message.Peer(proc)),
			ReduceOnPointToPoint: c.p.procOf(proc).ReduceOnPointToPoint,
		}
		if m.Client(n) != own && c.p.foreignClient(m.Client(n)) {
			profile.Ours = false
		}
	}
}

// begin gets a collective to plan into, and its number.
func (c *Comm) begin() (*collective, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.collectivePlanner()
	c.colls.mu.Lock()
	defer c.colls.mu.Unlock()
	var x *collective
	if n := len(c.colls.free); n > 0 {
		x = c.colls.free[n-1].(*collective)
		c.colls.free = c.colls.free[:n-1]
		x.ended = false
	} else {
		x = &collective{c: c}
		x.sched = &x.main
	}
	x.number = uint32(c.colls.number.Add(1) - 1) // whatever becomes of it, so that all members count the same
	if !c.colls.ours {
		c.colls.turns = append(c.colls.turns, x)
	}
	return x, nil
}

// collective plans an operation, executes it and blocks until it is done here.
func (c *Comm) collective(plan func(*coll.Planner, *coll.Schedule) error) error {
	x, err := c.begin()
	if err != nil {
		return err
	}
	return x.run(plan(c.colls.planner, &x.main))
}

// run executes what was planned and blocks until it is done here. planned is
// the planner's error.
func (x *collective) run(planned error) error {
	p := x.c.p
	p.lock()
	defer p.unlock()
	x.err = planned
	for !x.done() && p.failure == nil {
		p.turn()
	}
	_, err := x.finish()
	return err
}

// start begins to execute what was planned and gives the request of it. Whoever
// makes progress carries it on.
func (x *collective) start(fn string, planned error) (Request, error) {
	p := x.c.p
	p.lock()
	defer p.unlock()
	x.err = planned
	if x.err != nil {
		_, err := x.finish()
		return Request{}, err
	}
	p.dispatch(x)
	return p.begun(x.c, fn, x), nil
}

// carryOn makes the operation a background operation of the process.
func (x *collective) carryOn() (over bool) { return x.done() }

// over tells whether the operation has ended, well or not.
func (x *collective) over() bool { return x.ended || x.err != nil }

// done carries the operation on as far as it goes without waiting, and tells
// whether it is over.
func (x *collective) done() bool {
	if x.busy || !x.over() && !x.begun && !x.first() {
		return false
	}
	for !x.over() {
		if !x.collect() {
			return false
		}
		if x.err != nil {
			break
		}
		steps, err := x.sched.Next()
		if x.err = err; len(steps) == 0 && err == nil {
			x.next()
		}
		for i := range steps {
			if x.err == nil {
				x.err = x.do(&steps[i])
			}
		}
	}
	x.leave()
	return true
}

// next is called when a schedule has been executed.
func (x *collective) next() {
	if x.checking != nil {
		x.err = x.checked()
		return
	}
	if x.after != nil {
		after := x.after
		x.after = nil
		x.err = after()
		if x.after != nil {
			return
		}
	}
	x.ended = true
}

// first tells whether it is the operation's turn.
func (x *collective) first() bool {
	cs := &x.c.colls
	if cs.ours {
		return true
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.turns) == 0 || cs.turns[0] == backgroundOp(x)
}

// leave lets the next operation have its turn.
func (x *collective) leave() {
	cs := &x.c.colls
	if cs.ours {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if i := slices.Index(cs.turns, backgroundOp(x)); i >= 0 {
		cs.turns = slices.Delete(cs.turns, i, i+1)
		if len(cs.turns) > 0 {
			x.c.p.rouse()
		}
	}
}

// collect takes the messages of the round that are done, and tells whether all
// are.
func (x *collective) collect() bool {
	for n := len(x.open) - 1; n >= 0; n-- {
		o := x.open[n]
		if !o.r.Done() {
			return false
		}
		st := o.r.Status()
		x.c.p.eng.Release(o.r)
		x.open = x.open[:n]
		switch {
		case st.Err != nil:
			x.err = fmt.Errorf("rank %d: %w", o.peer, st.Err)
		case o.want >= 0 && st.Len != int64(o.want):
			x.err = fmt.Errorf("%w: rank %d sent %d bytes, %d are expected", coll.ErrCount, o.peer, st.Len, o.want)
		default:
			continue
		}
		return true
	}
	return true
}

// do does a local step or starts a message.
func (x *collective) do(t *coll.Step) error {
	if t.Local() {
		if len(t.Dst) < bigStep {
			return t.Run()
		}
		return x.outside(t.Run)
	}
	x.begun = true
	p := x.c.p
	proc, _ := x.c.Comm.Proc(int(t.Peer))
	if t.Remote {
		proc, _ = x.c.Comm.Partner(int(t.Peer))
	}
	peer, tag := message.Peer(proc), t.Tag
	if x.c.colls.ours {
		tag = coll.Numbered(tag, x.number)
	}
	if t.Action == coll.Recv {
		r := p.eng.Recv(message.Envelope{Context: t.Context, Rank: t.Peer, Tag: tag}, peer, t.Dst)
		x.open = append(x.open, part{r, len(t.Dst), t.Peer})
		return nil
	}
	env := message.Envelope{Context: t.Context, Rank: wire.CommRank(x.c.Comm.Rank()), Tag: tag}
	r := p.eng.Send(peer, env, message.Standard, t.Src, int64(len(t.Src)), uint64(t.Kind))
	p.send(peer, len(t.Src), true)
	x.open = append(x.open, part{r, -1, t.Peer})
	return nil
}

// outside works without the lock.
func (x *collective) outside(work func() error) error {
	p := x.c.p
	x.busy = true
	p.unlock()
	err := work()
	p.lock()
	x.busy = false
	p.rouse() // who waits for the operation has found it busy
	return err
}

// status is what finish will give.
func (x *collective) status() (Status, error) { return emptyStatus, x.err }

// finish tells how the operation ended, and keeps its memory for the next.
func (x *collective) finish() (Status, error) {
	err := x.err
	if err == nil && !x.ended {
		err = x.c.p.failure
	}
	x.leave()
	x.gen++
	x.ended = true
	if err != nil && x.begun {
		x.abandon() // messages may still land in its memory
		return emptyStatus, err
	}
	x.main.Reset()
	x.sched, x.checking, x.after = &x.main, nil, nil
	x.err, x.ended, x.begun = nil, true, false // ended: it may still be a background operation
	x.c.colls.mu.Lock()
	defer x.c.colls.mu.Unlock()
	x.c.colls.free = append(x.c.colls.free, x)
	return emptyStatus, err
}

// abandon takes back what is still under way, as far as that is possible.
func (x *collective) abandon() {
	for _, o := range x.open {
		x.c.p.eng.Cancel(o.r)
		x.c.p.eng.Release(o.r)
	}
	x.open = nil
}
