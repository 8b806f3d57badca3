//go:build cgo && !386 && !arm

package main

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

type arguments struct {
	send, recv blocks
	op         mpi.Op
}

// blocks are sent to, or received from, the members that take part in an operation: a buffer, with
// counts and displacements if its blocks are of any length, or a buffer for each.
type blocks struct {
	buf            mpi.Buffer
	counts, displs []int
	bufs           []mpi.Buffer
}

type argumentReader func(c *commObject) (arguments, error)

type starter func(c *commObject, a arguments) (mpi.Request, error)

func collect(fn string, which int32, c uintptr, take argumentReader, do func(c *commObject, a arguments) error) int32 {
	return onComm(fn, which, c, func(c *commObject) error {
		a, err := take(c)
		if err != nil {
			return err
		}
		return do(c, a)
	})
}

func start(fn string, which int32, c, q uintptr, take argumentReader, do starter) int32 {
	return begin(fn, which, c, q, func(c *commObject) (mpi.Request, error) {
		a, err := take(c)
		if err != nil {
			return mpi.Request{}, err
		}
		return do(c, a)
	})
}

// prepare makes the persistent request of an operation. keep copies the arguments that it needs
// later.
func prepare(fn string, which int32, c, info, q uintptr, keep func(k *retained) argumentReader, do starter) int32 {
	return onComm(fn, which, c, func(c *commObject) error {
		if _, err := infoOf(info); err != nil {
			return err
		}
		to, err := result[uintptr]("request", q)
		if err != nil {
			return err
		}
		k, err := retain(c)
		if err != nil {
			return err
		}
		take := keep(k)
		h := requests.Add(requestObject{
			owner: &c.object,
			again: func() (mpi.Request, error) {
				a, err := take(k.c)
				if err != nil {
					return mpi.Request{}, err
				}
				return do(k.c, a)
			},
			kept: k,
		})
		if h == 0 {
			k.free()
			return fmt.Errorf("too many requests: %w", mpi.ErrRequest)
		}
		*to = h
		return nil
	})
}

// partners returns the number of members with which a collective operation on c exchanges data.
func (c *commObject) partners() int {
	if n, err := c.RemoteSize(); c.Inter() && err == nil {
		return n
	}
	return c.Size()
}

// role reports whether the calling proc is the root, and whether it exchanges data with the root.
func (c *commObject) role(root int32) (is, other bool) {
	if c.Inter() {
		return root == mpi.Root, root != mpi.Root && root != mpi.ProcNull
	}
	return int(root) == c.Rank(), true
}

func (c *commObject) neighbours() (in, out int, err error) {
	kind, err := c.TopoTest()
	if err != nil {
		return 0, 0, err
	}
	switch kind {
	case mpi.Cart:
		n, err := c.CartdimGet()
		return 2 * n, 2 * n, err
	case mpi.Graph:
		n, err := c.GraphNeighborsCount(c.Rank())
		return n, n, err
	case mpi.DistGraph:
		in, out, _, err := c.DistGraphNeighborsCount()
		return in, out, err
	}
	return 0, 0, fmt.Errorf("%w: the communicator has none", comm.ErrTopology)
}

// side has the arguments about one buffer of an operation, the send or the receive buffer: one
// block, one for each member that takes part, blocks of different lengths, or blocks with a
// datatype each.
type side struct {
	buf            uintptr
	count          int64
	counts, displs uintptr
	t              uintptr // a datatype, or an array of them
	wideCounts     int32   // 1: counts are MPI_Counts, else ints
	wideDispls     int32   // 1: displs are MPI_Aints, else ints
	form           form
	significant    significance
	root           int32
}

type form uint8

const (
	oneBlock  form = iota
	eachBlock      // each block has count items
	varied         // block i has counts[i] items, starting at displs[i]
	apart          // block i has counts[i] items of its own datatype, at offset displs[i] in bytes
)

type significance uint8

const (
	everyone significance = iota
	theRoot
	theOthers // others, and the root of an intracommunicator
)

// each returns a with a block for each member.
func (a side) each() side {
	a.form = eachBlock
	return a
}

// atRoot returns a as a buffer that matters at the root only.
func (a side) atRoot(root int32) side {
	a.significant, a.root = theRoot, root
	return a
}

// others returns a as a buffer that matters at the members that send to the root or receive from
// it.
func (a side) others(root int32) side {
	a.significant, a.root = theOthers, root
	return a
}

func (a side) matters(c *commObject) bool {
	is, other := c.role(a.root)
	return a.significant == everyone || a.significant == theRoot && is || a.significant == theOthers && other
}

func (a side) take(c *commObject, n int) (b blocks, err error) {
	switch {
	case !a.matters(c):
	case a.form == oneBlock:
		b.buf, err = buffer2(a.buf, a.count, a.t)
	case a.form == eachBlock:
		b.buf, err = whole(a.buf, a.count, n, a.t)
	case a.buf == inPlace:
		b.buf = mpi.InPlace
	case a.form == varied:
		return a.takeVaried(n)
	case a.form == apart:
		b.bufs, err = a.takeApart(n)
	}
	return b, err
}

// whole returns a buffer that has a block of count items for each of n members.
func whole(p uintptr, count int64, n int, t uintptr) (mpi.Buffer, error) {
	if p == inPlace {
		return mpi.InPlace, nil // the count is ignored: MPI 5.0, 6.8
	}
	if count > 0 && n > 0 && count > (1<<63-1)/int64(n) {
		return mpi.Buffer{}, fmt.Errorf("%w: %d items for each of %d members", datatype.ErrTooLarge, count, n)
	}
	return buffer2(p, count*int64(n), t)
}

// takeVaried is take for blocks of different lengths.
func (a side) takeVaried(n int) (b blocks, err error) {
	if b.counts, err = ints("counts", a.counts, n, a.wideCounts); err != nil {
		return b, err
	}
	if b.displs, err = ints("displs", a.displs, n, a.wideDispls); err != nil {
		return b, err
	}
	t, err := takeType("datatype", a.t)
	if err != nil {
		return b, err
	}
	first, end := 0, 0
	for i, count := range b.counts {
		if count == 0 {
			continue // empty blocks may be anywhere
		}
		first = min(first, b.displs[i])
		end = max(end, b.displs[i]+count)
	}
	for i := range b.displs { // displacements are relative to the first block's
		if b.displs[i] -= first; b.counts[i] == 0 {
			b.displs[i] = 0
		}
	}
	b.buf, err = used(a.buf+uintptr(int64(first)*t.Extent()), int64(end-first), a.t, all)
	return b, err
}

// takeApart is take for blocks with their own datatypes, whose displacements are bytes.
func (a side) takeApart(n int) ([]mpi.Buffer, error) {
	counts, err := ints("counts", a.counts, n, a.wideCounts)
	if err != nil {
		return nil, err
	}
	displs, err := ints("displs", a.displs, n, a.wideDispls)
	if err != nil {
		return nil, err
	}
	ts, err := array[uintptr]("datatypes", a.t, n)
	if err != nil {
		return nil, err
	}
	bufs := make([]mpi.Buffer, n)
	for i := range bufs {
		p, t := a.buf+uintptr(displs[i]), ts[i]
		if counts[i] == 0 && typeOf(t) == nil {
			p, t = 0, typeByte // an empty block needs no valid datatype
		}
		if bufs[i], err = buffer(p, int64(counts[i]), t); err != nil {
			return nil, fmt.Errorf("of rank %d: %w", i, err)
		}
	}
	return bufs, nil
}

// Datatypes by name.
const (
	typeInt              = 0x209
	typeUnsignedLongLong = 0x20f
	typeByte             = 0x247
)

func nothing() argumentReader {
	return func(*commObject) (arguments, error) { return arguments{}, nil }
}

func exchange(send, recv side) argumentReader {
	return func(c *commObject) (a arguments, err error) {
		n := c.partners()
		if a.send, err = send.take(c, n); err == nil {
			a.recv, err = recv.take(c, n)
		}
		return a, err
	}
}

func neighbors(send, recv side) argumentReader {
	return func(c *commObject) (a arguments, err error) {
		in, out, err := c.neighbours()
		if err != nil {
			return a, err
		}
		if a.send, err = send.take(c, out); err == nil {
			a.recv, err = recv.take(c, in)
		}
		return a, err
	}
}

func bcast(buf uintptr, count int64, t uintptr, root int32) argumentReader {
	return func(c *commObject) (a arguments, err error) {
		if c.Inter() && root == mpi.ProcNull {
			buf, count, t = 0, 0, typeByte // not significant here, so they may be anything
		}
		a.send.buf, err = used(buf, count, t, all)
		if !c.Inter() && int(root) != c.Rank() {
			a.recv = a.send
		}
		return a, err
	}
}

func operands(sbuf, rbuf uintptr, scount, rcount int64, t, op uintptr) (a arguments, err error) {
	if a.op, err = opOf(op); err != nil {
		return a, err
	}
	if a.send.buf, err = buffer2(sbuf, scount, t); err != nil {
		return a, err
	}
	if a.recv.buf, err = buffer2(rbuf, rcount, t); err == nil && rbuf == inPlace {
		err = fmt.Errorf("%w: argument recvbuf is MPI_IN_PLACE", mpi.ErrBuffer)
	}
	return a, err
}

func reduce(sbuf, rbuf uintptr, count int64, t, op uintptr, root int32) argumentReader {
	return func(c *commObject) (arguments, error) {
		is, other := c.role(root)
		if !is {
			rbuf = 0 // not significant here, so it may be anything
		}
		if !other {
			sbuf = 0
		}
		if !is && !other {
			count, t = 0, typeByte
		}
		return operands(sbuf, rbuf, count, count, t, op)
	}
}

func combine(sbuf, rbuf uintptr, count int64, t, op uintptr) argumentReader {
	return func(*commObject) (arguments, error) { return operands(sbuf, rbuf, count, count, t, op) }
}

func reduceScatterBlock(sbuf, rbuf uintptr, count int64, t, op uintptr) argumentReader {
	return func(c *commObject) (arguments, error) {
		all, mine := count*int64(c.Size()), count
		if sbuf == inPlace {
			mine = all
		}
		return operands(sbuf, rbuf, all, mine, t, op)
	}
}

func reduceScatter(sbuf, rbuf, counts, t, op uintptr, which int32) argumentReader {
	return func(c *commObject) (arguments, error) {
		parts, err := ints("recvcounts", counts, c.Size(), which)
		if err != nil {
			return arguments{}, err
		}
		all, mine := 0, parts[c.Rank()]
		for _, n := range parts {
			all += n
		}
		if sbuf == inPlace {
			mine = all
		}
		a, err := operands(sbuf, rbuf, int64(all), int64(mine), t, op)
		a.recv.counts = parts
		return a, err
	}
}
