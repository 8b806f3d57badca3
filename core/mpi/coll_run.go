package mpi

import (
	"errors"
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// collectives are a communicator's means of collective operations.
type collectives struct {
	once    sync.Once
	planner *coll.Planner
	mu      sync.Mutex
	free    []*collective
}

// bigStep is how many bytes of local work are done without the lock, so that
// other goroutines can communicate meanwhile.
const bigStep = 32 << 10

// collective is one operation under way: a schedule and the messages of its
// current round. Its process is locked when it is used.
type collective struct {
	c     *Comm
	sched coll.Schedule
	open  []part
	err   error
	ended bool
	begun bool // something was sent or received
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
		job := c.p.job
		profile := coll.Profile{XSize: int(job.XSize), MaxLinear: int(job.MaxLinear)}
		m := c.Masters()
		for n := range m.Count() {
			proc, _ := c.Proc(m.Rank(n))
			client := int(m.Client(n))
			for len(profile.Clients) <= client {
				profile.Clients = append(profile.Clients, coll.Peer{Rep: datatype.External32})
			}
			profile.Clients[client] = coll.Peer{
				Rep:                  c.p.data[proc],
				ReduceOnPointToPoint: job.Procs[proc].ReduceOnPointToPoint,
			}
		}
		c.colls.planner = coll.NewPlanner(c.Comm, profile)
	})
	return c.colls.planner
}

// begin gets a collective to plan into.
func (c *Comm) begin() (*collective, error) {
	if c == nil {
		return nil, noComm()
	}
	if err := c.alive(); err != nil {
		return nil, err
	}
	c.colls.mu.Lock()
	defer c.colls.mu.Unlock()
	if n := len(c.colls.free); n > 0 {
		x := c.colls.free[n-1]
		c.colls.free = c.colls.free[:n-1]
		return x, nil
	}
	return &collective{c: c}, nil
}

// collective plans an operation, executes it and blocks until it is done here.
func (c *Comm) collective(plan func(*coll.Planner, *coll.Schedule) error) error {
	x, err := c.begin()
	if err != nil {
		return err
	}
	return x.run(plan(c.collectivePlanner(), &x.sched))
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
	return x.finish()
}

// done carries the operation on as far as it goes without waiting, and tells
// whether it is over.
func (x *collective) done() bool {
	for !x.ended && x.err == nil {
		if !x.collect() {
			return false
		}
		if x.err != nil {
			break
		}
		steps, err := x.sched.Next()
		x.err, x.ended = err, len(steps) == 0
		for i := range steps {
			if x.err == nil {
				x.err = x.start(&steps[i])
			}
		}
	}
	return true
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

// start does a local step or starts a message.
func (x *collective) start(t *coll.Step) error {
	if t.Local() {
		return x.local(t)
	}
	x.begun = true
	p := x.c.p
	proc, _ := x.c.Proc(int(t.Peer))
	peer := message.Peer(proc)
	if t.Action == coll.Recv {
		r := p.eng.Recv(message.Envelope{Context: t.Context, Rank: t.Peer, Tag: t.Tag}, peer, t.Dst)
		x.open = append(x.open, part{r, len(t.Dst), t.Peer})
		return nil
	}
	env := message.Envelope{Context: t.Context, Rank: wire.CommRank(x.c.Rank()), Tag: t.Tag}
	r := p.eng.Send(peer, env, message.Standard, t.Src, int64(len(t.Src)), uint64(t.Kind))
	p.send(peer, len(t.Src), true)
	x.open = append(x.open, part{r, -1, t.Peer})
	return nil
}

func (x *collective) local(t *coll.Step) error {
	if len(t.Dst) < bigStep {
		return t.Run()
	}
	x.c.p.unlock()
	defer x.c.p.lock()
	return t.Run()
}

// finish tells how the operation ended, and keeps its memory for the next.
func (x *collective) finish() error {
	err := x.err
	if err == nil && !x.ended {
		err = x.c.p.failure
	}
	if err != nil && x.begun {
		x.abandon() // messages may still land in its memory
		return err
	}
	x.sched.Reset()
	x.err, x.ended, x.begun = nil, false, false
	x.c.colls.mu.Lock()
	defer x.c.colls.mu.Unlock()
	x.c.colls.free = append(x.c.colls.free, x)
	return err
}

// abandon takes back what is still under way, as far as that is possible.
func (x *collective) abandon() {
	for _, o := range x.open {
		x.c.p.eng.Cancel(o.r)
		x.c.p.eng.Release(o.r)
	}
	x.open = nil
}

// agree gives the largest of what all members of c contribute.
// The process is locked, but not meanwhile.
// IMPI ch.4, Context IDs: an Allreduce of one Uint8 with MAX.
func (c *Comm) agree(mine wire.ContextID) (wire.ContextID, error) {
	c.p.unlock()
	defer c.p.lock()
	value := []uint64{uint64(mine)}
	err := allreduce(c, nil, value, Max)
	return wire.ContextID(value[0]), err
}

// derive makes a communicator of a part of c, with the context that all members
// of c agree on. All of them call it; it gives nil to those whose group is nil.
// bad is why the caller cannot take part in it: then nobody gets anything.
func (c *Comm) derive(s comm.Spec, bad error) (*Comm, error) {
	if c == nil {
		return nil, noComm()
	}
	context, err := c.newContext(bad)
	if err != nil || s.Group == nil {
		return nil, err
	}
	s.Context = context
	d, err := c.p.newComm(s)
	if err != nil {
		return nil, err
	}
	d.inherit(c)
	return d, nil
}

// newContext agrees with the members of c on a context, again and again as long
// as one of them is about to agree on another.
func (c *Comm) newContext(bad error) (context wire.ContextID, err error) {
	p, ours := c.p, c.ours()
	p.lock()
	defer p.unlock()
	p.contexts.Begin(c.Context())
	defer p.contexts.End(c.Context())
	for {
		mine, ok := p.contexts.Offer(c.Context())
		switch {
		case ours && !ok:
			mine = comm.Busy
		case ours && bad != nil:
			mine = comm.Failed // the others would take it for a context
		}
		agreed, err := c.agree(mine)
		if err != nil {
			return 0, err
		}
		switch {
		case ours && agreed == comm.Failed && bad == nil:
			return 0, ErrElsewhere
		case ours && agreed == comm.Failed:
			return 0, bad
		case !ours && bad != nil:
			_, err := p.contexts.Take(agreed)
			return 0, errors.Join(bad, err)
		case !ours || agreed != comm.Busy:
			return p.contexts.Take(agreed)
		}
		p.contexts.Withdraw(c.Context())
	}
}

// ours tells whether all members of c run this library: those of other sites do
// if data travels to them as it lies in memory.
func (c *Comm) ours() bool {
	m := c.Masters()
	own := c.ClientOf(c.Self())
	for n := range m.Count() {
		if client := m.Client(n); client != own && c.p.roster.external[client] {
			return false
		}
	}
	return true
}
