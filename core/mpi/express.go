package mpi

import (
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/express"
	"github.com/openimpi/impi/internal/poll"
)

// knocks is how often Go looks for C to leave the gate before it offers its core.
const knocks = 256

// expressed is a proc's part in the memory that it shares with C.
type expressed struct {
	*express.Memory
	ports    [express.Lanes]*port // of the lanes; nil: free
	hastened uint32               // Haste in whole rounds
	adopted  [express.Requests]*message.Request
	ops      [express.Requests]expressOp
	extras   [express.Requests]extra
}

// UseExpress lets C code send and receive short messages between procs of this host by itself,
// by memory that is not Go's. It is called after Init, before anything else; nothing happens where
// what members call is compared. The memory is the library's for ever.
func UseExpress(m *express.Memory) {
	if p, err := current(); err == nil && !p.check {
		p.useExpress(m)
	}
}

func (p *process) useExpress(m *express.Memory) {
	p.lock()
	defer p.unlock()
	m.Reset()
	x := &expressed{Memory: m}
	for i := range x.ops {
		x.ops[i] = expressOp{p: p, i: int32(i)}
		x.extras[i].op = &x.ops[i]
	}
	p.express = x
	for _, q := range p.ports {
		if q != nil {
			x.join(p, q)
		}
	}
}

// ForgetExpress has the C code look up all communicators again: one was freed, or its handle given
// away.
func ForgetExpress() {
	if p, err := current(); err == nil {
		p.forgetExpress()
	}
}

func (p *process) forgetExpress() {
	p.lock()
	defer p.unlock()
	if p.express != nil {
		p.express.Forget()
	}
}

// join gives q a lane if it takes fast-box messages, its data are those of this machine, and one is
// free.
func (x *expressed) join(p *process, q *port) {
	if !q.fastBoxes || !ofThisMachine(p.dataOf(q.peer)) {
		return
	}
	for i := range x.ports {
		if x.ports[i] == nil {
			x.ports[i] = q
			x.Used++
			q.Link.(link.FastBoxLink).MoveFastBoxes(&x.Lanes[i].FastBoxes)
			x.Forget()
			return
		}
	}
}

// ofThisMachine tells whether who has that representation has elements like ours, but for those
// that differ between languages.
func ofThisMachine(r datatype.Representation) bool {
	return r == datatype.Native || r == datatype.HostOrder() || r == datatype.NativeX86 && datatype.HostOrder() == datatype.NativeLE
}

// leave takes the lane of q back, if it has one.
func (x *expressed) leave(q *port) {
	for i := range x.ports {
		if x.ports[i] == q {
			q.Link.(link.FastBoxLink).MoveFastBoxes(new(link.FastBoxes))
			x.ports[i] = nil
			x.Used--
			x.Lanes[i] = express.Lane{}
			x.Forget()
		}
	}
}

// close keeps C out, and makes the receives that it has left Go's. The process is locked.
func (x *expressed) close(p *process) {
	if x.Gate.Load() == express.Closed {
		return
	}
	if !x.Gate.CompareAndSwap(express.Open, express.Closed) {
		x.knock()
	}
	if n := x.Haste / hasteMax; n != x.hastened { // C is here to look everywhere
		x.hastened = n
		p.links.Everywhere()
		p.eng.Review()
	}
	for x.First != express.None {
		x.adopt(p)
	}
}

// knock has C leave, and closes the gate behind it.
func (x *expressed) knock() {
	x.Knock.Store(1)
	for i := 1; !x.Gate.CompareAndSwap(express.Open, express.Closed); i++ {
		if i%knocks == 0 {
			poll.Yield() // who is inside may be waiting for this core
		}
		poll.Pause()
	}
	x.Knock.Store(0)
}

// adopt makes the oldest receive of C one of the engine.
func (x *expressed) adopt(p *process) {
	i := x.First
	r := &x.Table[i]
	x.First = r.Next
	if x.First == express.None {
		x.Last = express.None
	}
	q := x.ports[r.Lane]
	env := message.Envelope{Context: wire.ContextID(r.Context), Rank: wire.CommRank(r.Rank), Tag: wire.Tag(r.Tag)}
	if r.Tag == AnyTag {
		env.Tag = message.AnyTag
	}
	m := p.eng.Recv(env, q.peer, unsafe.Slice((*byte)(r.Buf), r.Room))
	p.began(m)
	r.State, x.adopted[i] = express.Adopted, m
}

// open lets C in if nobody else is at anything. The process is locked, and unlocked afterwards.
func (x *expressed) open(p *process) {
	if x.Used == 0 || !p.calm() || p.links.Wanted.Load() != 0 || phase(p.state.Load()) >= finalizing {
		return
	}
	quiet := p.eng.Unoccupied()
	for i, q := range x.ports {
		if q == nil {
			continue
		}
		l := &x.Lanes[i]
		sends, takes := p.eng.FastBoxesOpen(q.id)
		var out, in bool
		l.OutAt, l.InAt, out, in = q.Link.(link.FastBoxLink).FastBoxesAt()
		l.Sends, l.Takes = flag(sends && out), flag(takes && in && quiet)
	}
	x.Polls = int32(p.spin.Eager())
	x.Gate.Store(express.Open)
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Express tells C what c is, which it calls by handle, unless it knows.
func (c *Comm) Express(handle uintptr) {
	x := c.p.express
	if x == nil || x.Place(handle).Handle == handle {
		return
	}
	c.p.lock()
	defer c.p.unlock()
	if c.alive() != nil {
		return
	}
	e := x.Place(handle)
	*e = express.Comm{Handle: handle, Context: uint64(c.Context()), Rank: int32(c.Rank()), TagUB: int32(c.tagUB())}
	for rank := range e.Lane {
		e.Lane[rank] = express.None
		proc, ok := c.Partner(rank)
		for i, q := range x.ports {
			if ok && q != nil && q.peer == message.Peer(proc) {
				e.Lane[rank] = int8(i)
			}
		}
	}
}

// WakeExpress wakes the proc at the other end of a lane, to which C has sent a fast-box message and
// which sleeps.
func WakeExpress(lane int) {
	if p, err := current(); err == nil {
		p.wakeExpress(lane)
	}
}

func (p *process) wakeExpress(lane int) {
	p.lock()
	defer p.unlock()
	if q := p.express.ports[lane]; q != nil {
		q.InPlace.Commit()
		q.Link.(link.FastBoxLink).WakeForFastBox()
	}
}

// ExpressRequest is the request that C has made as entry i of its table, in generation gen.
func (c *Comm) ExpressRequest(i int, gen uint32) Request {
	x := c.p.express
	x.extras[i].fn = "Irecv"
	return Request{c: c, extra: &x.extras[i], standing: standing{gen: gen, state: active}}
}

// expressOp is a request that C has made.
type expressOp struct {
	p *process
	i int32
}

func (o *expressOp) record() *express.Request { return &o.p.express.Table[o.i] }

func (o *expressOp) generation() uint32 { return o.record().Gen }

func (o *expressOp) done() bool {
	m := o.p.express.adopted[o.i]
	return m == nil || m.Done()
}

func (o *expressOp) status() (Status, error) {
	if m := o.p.express.adopted[o.i]; m != nil {
		return o.p.arrived(m, nil), nil
	}
	r := o.record()
	if r.Lane == express.None {
		return emptyStatus, nil
	}
	return Status{Source: int(r.Source), Tag: int(r.From), bytes: int64(r.Bytes)}, nil
}

func (o *expressOp) finish() (st Status, err error) {
	if m := o.p.express.adopted[o.i]; m != nil {
		st, err = o.p.received(m, nil)
	} else {
		st, err = o.status()
	}
	o.release()
	return st, err
}

func (o *expressOp) cancel() error {
	if m := o.p.express.adopted[o.i]; m != nil {
		o.p.eng.Cancel(m)
		o.p.output()
	}
	return nil
}

func (o *expressOp) free() error {
	if m := o.p.express.adopted[o.i]; m != nil {
		o.p.eng.Release(m)
	}
	o.release()
	return nil
}

func (o *expressOp) release() {
	o.p.express.adopted[o.i] = nil
	o.p.express.Release(o.i)
}
