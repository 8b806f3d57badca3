package p2p

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// A partitioned operation (MPI-4.1, 4.2) is a persistent send or receive whose data are provided,
// or used, in parts. All parts travel in one message, which leaves when the last one is ready.
//
// Partitioned sends match partitioned receives only, in the order in which both were made: the
// message is in the context of collective operations, and instead of a rank it has the number of
// the operation among those of the pair with this tag.

// partitions is the first of those numbers; no member has a rank as high.
const partitions wire.CommRank = 1 << 30

type partitioned struct {
	c         *proc.Comm
	recv      bool
	buf       proc.Buffer
	peer, tag int // arguments of the program
	with      message.Peer
	env       message.Envelope
	gen       uint32
	ready     []bool           // of a send, by partition
	missing   int              // number of partitions that are not ready
	r         *message.Request // the message; nil while some partitions are not ready
	items     *proc.Stream
}

func PsendInit(c *proc.Comm, b proc.Buffer, parts, dst, tag int) (proc.Request, error) {
	return newPartitioned(c, "PsendInit", &partitioned{buf: b, peer: dst, tag: tag}, parts)
}

func PrecvInit(c *proc.Comm, b proc.Buffer, parts, src, tag int) (proc.Request, error) {
	return newPartitioned(c, "PrecvInit", &partitioned{recv: true, buf: b, peer: src, tag: tag}, parts)
}

func newPartitioned(c *proc.Comm, fn string, x *partitioned, parts int) (proc.Request, error) {
	if err := fits(c, &x.buf); err != nil {
		return proc.Request{}, err
	}
	peer, none, err := c.PartnerOf(x.peer, x.tag)
	switch {
	case err != nil:
		return proc.Request{}, err
	case parts < 0 || parts > 0 && x.buf.Count()%parts != 0:
		return proc.Request{}, fmt.Errorf("%w: %d items in %d partitions", proc.ErrArg, x.buf.Count(), parts)
	case !none && (c.Process().Job.Dialect == wire.Draft || !c.Process().Worlds.Foreign(peer) && c.Process().Worlds.ForeignClient(c.Process().Worlds.Clients().Of(comm.Proc(peer)))):
		return proc.Request{}, proc.ForeignError(fn)
	}
	x.c, x.with, x.ready = c, peer, make([]bool, parts)
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	pair := proc.PartitionedMatch{Recv: x.recv, Peer: x.peer, Tag: x.tag}
	if c.State().Pairings == nil {
		c.State().Pairings = make(map[proc.PartitionedMatch]uint32)
	}
	number := wire.CommRank(c.State().Pairings[pair] % uint32(partitions))
	c.State().Pairings[pair]++
	x.env = message.Envelope{Context: c.CollectiveContext(), Rank: partitions + number, Tag: wire.Tag(x.tag)}
	return proc.NewPersistentRequest(c, &proc.RequestExtension{Op: x, Fn: fn, Plan: &proc.Plan{C: c, Fn: fn, Parts: x}}), nil
}

// Start starts the operation of q once more.
func (x *partitioned) Start(q *proc.Request) error {
	if err := x.c.Usable(); err != nil {
		return err
	}
	if x.with == message.NoPeer {
		q.State = proc.Trivial
		if x.recv {
			q.Fn = proc.ByIrecv
		}
		return nil
	}
	p := x.c.Process()
	p.Lock()
	defer p.Unlock()
	q.Gen, q.State = x.gen, proc.Active
	clear(x.ready)
	x.missing = len(x.ready)
	switch {
	case x.recv:
		in := p.Data.Items(x.with, x.buf)
		x.r, x.items = p.Irecv(x.env, x.with, &in), in.Items
	case x.missing == 0:
		x.send()
	}
	return nil
}

func (x *partitioned) send() {
	p := x.c.Process()
	out := p.Data.Items(x.with, x.buf)
	x.items = out.Items
	x.r = p.Isend(x.with, x.env, message.Standard, &out, false)
	p.WakeAll() // a goroutine may wait for the request already
}

func PreadyRange(q *proc.Request, low, high int) error {
	n := high - low + 1
	if low < 0 { // n may overflow an int
		n = 1
	}
	return eachReady(q, n, func(i int) int { return low + i })
}

func PreadyList(q *proc.Request, list []int) error {
	return eachReady(q, len(list), func(i int) int { return list[i] })
}

// eachReady marks n parts as ready; none if one of them is invalid.
func eachReady(q *proc.Request, n int, part func(i int) int) error {
	x, err := parted(q)
	switch {
	case err != nil:
		return err
	case x.recv:
		return fmt.Errorf("%w: it receives", proc.ErrRequest)
	case n < 0:
		return fmt.Errorf("%w: partitions %d to %d", proc.ErrArg, part(0), part(n-1))
	case q.State == proc.Trivial:
		for i := range n {
			if err := x.part(part(i)); err != nil {
				return err
			}
		}
		return nil
	case q.State != proc.Active:
		return fmt.Errorf("%w: it is not active", proc.ErrRequest)
	}
	p := x.c.Process()
	p.Lock()
	defer p.Unlock()
	for i := range n {
		err := x.part(part(i))
		if err == nil && x.ready[part(i)] {
			err = fmt.Errorf("%w: partition %d is ready already", proc.ErrArg, part(i))
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

// Parrived reports whether a partition of a receive has arrived; true for a null request (MPI-4.1,
// 4.2).
func Parrived(q *proc.Request, partition int) (bool, error) {
	if q.State == proc.Null {
		return true, nil
	}
	x, err := parted(q)
	switch {
	case err != nil:
		return false, err
	case !x.recv:
		return false, fmt.Errorf("%w: it sends", proc.ErrRequest)
	}
	if err := x.part(partition); err != nil {
		return false, err
	}
	return q.Ready()
}

func parted(q *proc.Request) (*partitioned, error) {
	if x, ok := q.Op().(*partitioned); ok {
		return x, nil
	}
	return nil, fmt.Errorf("%w: it is not partitioned", proc.ErrRequest)
}

func (x *partitioned) part(i int) error {
	if i < 0 || i >= len(x.ready) {
		return fmt.Errorf("%w: partition %d of %d", proc.ErrArg, i, len(x.ready))
	}
	return nil
}

func (x *partitioned) Generation() uint32 { return x.gen }

func (x *partitioned) Done() bool { return x.r != nil && x.r.Done() }

func (x *partitioned) Status() (proc.Status, error) {
	if !x.recv {
		return proc.EmptyStatus, nil
	}
	return x.described(x.c.Process().RecvStatus(x.r, x.items)), nil
}

// described returns st with the rank and the tag that the program knows.
func (x *partitioned) described(st proc.Status) proc.Status {
	st.Source, st.Tag = x.peer, x.tag
	return st
}

func (x *partitioned) Finish() (st proc.Status, err error) {
	x.gen++
	r := x.r
	x.r = nil
	switch {
	case r == nil:
		return proc.Status{}, x.c.Process().Failure
	case x.recv:
		st, err = x.c.Process().FinishRecv(r, x.items)
		return x.described(st), err
	}
	return proc.EmptyStatus, x.c.Process().End(r, x.items)
}

func (x *partitioned) Cancel() error {
	return fmt.Errorf("%w: a partitioned operation cannot be cancelled", proc.ErrRequest)
}

func (x *partitioned) Free() error {
	return fmt.Errorf("%w: a partitioned operation cannot be left alone before it is complete", proc.ErrRequest)
}
