package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// A partitioned operation (MPI-4, Partitioned Point-to-Point Communication) is a
// persistent send or receive whose data are given, or looked at, in parts. All parts
// travel in one message, which leaves when the last one is ready.
//
// Its sends match its receives only, in the order in which both were made: the
// message is in the context of collective operations, with a rank that no member
// has, which counts those of a pair with the same tag.

// partitions is where those ranks begin.
const partitions wire.CommRank = 1 << 30

// partitioned is the operation of a partitioned request.
type partitioned struct {
	c         *Comm
	recv      bool
	buf       Buffer
	peer, tag int // as the program says them
	with      message.Peer
	env       message.Envelope
	gen       uint32
	ready     []bool           // of a send, by partition
	missing   int              // partitions that are not ready
	r         *message.Request // nil: not all are
	items     *stream
}

// PsendInit makes an inactive request that sends b in parts parts of as many items
// each (MPI_Psend_init). Each time it is started, Pready has to be called for each
// part. b must not be changed from there to its completion.
func (c *Comm) PsendInit(b Buffer, parts, dst, tag int) (Request, error) {
	q, err := c.partitioned("PsendInit", &partitioned{buf: b, peer: dst, tag: tag}, parts)
	return q, c.failed("PsendInit", err)
}

// PrecvInit makes an inactive request that receives what a PsendInit sends into b,
// which has parts parts; the sender's may be more or fewer (MPI_Precv_init). There
// are no wildcards.
func (c *Comm) PrecvInit(b Buffer, parts, src, tag int) (Request, error) {
	q, err := c.partitioned("PrecvInit", &partitioned{recv: true, buf: b, peer: src, tag: tag}, parts)
	return q, c.failed("PrecvInit", err)
}

func (c *Comm) partitioned(fn string, x *partitioned, parts int) (Request, error) {
	if err := c.fits(&x.buf); err != nil {
		return Request{}, err
	}
	peer, none, err := c.partner(x.peer, x.tag)
	switch {
	case err != nil:
		return Request{}, err
	case parts < 0 || parts > 0 && x.buf.count%parts != 0:
		return Request{}, fmt.Errorf("%w: %d items in %d partitions", ErrArg, x.buf.count, parts)
	case !none && (c.p.job.Dialect == wire.Draft || !c.p.stranger(peer) && c.p.foreignClient(c.p.clients().Of(comm.Proc(peer)))):
		return Request{}, errForeign(fn)
	}
	x.c, x.with, x.ready = c, peer, make([]bool, parts)
	p := c.p
	p.lock()
	defer p.unlock()
	pair := pairing{x.recv, x.peer, x.tag}
	if c.pairings == nil {
		c.pairings = make(map[pairing]uint32)
	}
	number := wire.CommRank(c.pairings[pair] % uint32(partitions))
	c.pairings[pair]++
	x.env = message.Envelope{Context: c.CollectiveContext(), Rank: partitions + number, Tag: wire.Tag(x.tag)}
	return Request{c: c, extra: &extra{op: x, fn: fn, plan: &plan{c: c, fn: fn, parts: x}}, standing: standing{state: inactive}}, nil
}

// start begins the operation of q once more.
func (x *partitioned) start(q *Request) error {
	if err := x.c.check(); err != nil {
		return err
	}
	if x.with == message.NoPeer {
		q.state = procNull
		if x.recv {
			q.fn = byIrecv
		}
		return nil
	}
	p := x.c.p
	p.lock()
	defer p.unlock()
	q.gen, q.state = x.gen, active
	clear(x.ready)
	x.missing = len(x.ready)
	switch {
	case x.recv:
		in := p.items(x.with, x.buf)
		x.r, x.items = p.accept(x.env, x.with, &in), in.items
		p.began(x.r)
	case x.missing == 0:
		x.send()
	}
	return nil
}

// send sends all parts.
func (x *partitioned) send() {
	p := x.c.p
	out := p.items(x.with, x.buf)
	x.items = out.items
	x.r = p.post(x.with, x.env, message.Standard, &out, false)
	p.rouse() // another goroutine may wait for the request already
}

// Pready says that a part of an active partitioned send may be sent. Several
// goroutines may say it at a time, each of other parts.
func (q *Request) Pready(partition int) error { return q.PreadyRange(partition, partition) }

// PreadyRange is Pready of the parts from low to high, both included.
func (q *Request) PreadyRange(low, high int) error {
	c := q.c
	n := high - low + 1
	if low < 0 { // n may be beyond what an int can be
		n = 1
	}
	return c.failed("Pready", q.eachReady(n, func(i int) int { return low + i }))
}

// PreadyList is Pready of several parts.
func (q *Request) PreadyList(list []int) error {
	c := q.c
	return c.failed("Pready", q.eachReady(len(list), func(i int) int { return list[i] }))
}

// eachReady is Pready of n parts: of none if one of them is wrong.
func (q *Request) eachReady(n int, part func(i int) int) error {
	x, err := q.parted()
	switch {
	case err != nil:
		return err
	case x.recv:
		return fmt.Errorf("%w: it receives", ErrRequest)
	case n < 0:
		return fmt.Errorf("%w: partitions %d to %d", ErrArg, part(0), part(n-1))
	case q.state == procNull:
		for i := range n {
			if err := x.part(part(i)); err != nil {
				return err
			}
		}
		return nil
	case q.state != active:
		return fmt.Errorf("%w: it is not active", ErrRequest)
	}
	p := x.c.p
	p.lock()
	defer p.unlock()
	for i := range n {
		err := x.part(part(i))
		if err == nil && x.ready[part(i)] {
			err = fmt.Errorf("%w: partition %d is ready already", ErrArg, part(i))
		}
		if err != nil {
			for j := range i {
				x.ready[part(j)] = false
			}
			return err
		}
		x.ready[part(i)] = true
	}
	if x.missing -= n; x.missing == 0 && n > 0 {
		x.send()
	}
	return nil
}

// Parrived tells whether a part of a partitioned receive has arrived. What is not
// active has.
func (q *Request) Parrived(partition int) (bool, error) {
	c := q.c
	arrived, err := q.arrived(partition)
	return arrived, c.failed("Parrived", err)
}

func (q *Request) arrived(partition int) (bool, error) {
	if q.state == null {
		return true, nil
	}
	x, err := q.parted()
	switch {
	case err != nil:
		return false, err
	case !x.recv:
		return false, fmt.Errorf("%w: it sends", ErrRequest)
	}
	if err := x.part(partition); err != nil {
		return false, err
	}
	return q.ready()
}

// parted is the operation of a partitioned request.
func (q *Request) parted() (*partitioned, error) {
	if x, ok := q.op().(*partitioned); ok {
		return x, nil
	}
	return nil, fmt.Errorf("%w: it is not partitioned", ErrRequest)
}

// part refuses a number that no part has.
func (x *partitioned) part(i int) error {
	if i < 0 || i >= len(x.ready) {
		return fmt.Errorf("%w: partition %d of %d", ErrArg, i, len(x.ready))
	}
	return nil
}

func (x *partitioned) generation() uint32 { return x.gen }

func (x *partitioned) done() bool { return x.r != nil && x.r.Done() }

func (x *partitioned) status() (Status, error) {
	if !x.recv {
		return emptyStatus, nil
	}
	return x.described(x.c.p.arrived(x.r, x.items)), nil
}

// described gives a status the rank and the tag that the program knows.
func (x *partitioned) described(st Status) Status {
	st.Source, st.Tag = x.peer, x.tag
	return st
}

func (x *partitioned) finish() (st Status, err error) {
	x.gen++
	r := x.r
	x.r = nil
	switch {
	case r == nil:
		return Status{}, x.c.p.failure
	case x.recv:
		st, err = x.c.p.received(r, x.items)
		return x.described(st), err
	}
	return emptyStatus, x.c.p.end(r, x.items)
}

func (x *partitioned) cancel() error {
	return fmt.Errorf("%w: a partitioned operation cannot be cancelled", ErrRequest)
}

func (x *partitioned) free() error {
	return fmt.Errorf("%w: a partitioned operation cannot be left alone before it is complete", ErrRequest)
}
