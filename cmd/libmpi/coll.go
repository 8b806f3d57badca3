//go:build cgo && !386 && !arm

package main

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

// form is how a collective operation is called.
type form int

const (
	blocking    form = iota
	nonblocking      // gives a request
)

// collective is an operation with its arguments as the program gave them. It is
// done, or begun, on a communicator.
type collective func(c *commObject, how form) (mpi.Request, error)

// collect does an operation.
func collect(fn string, which int32, c uintptr, f collective) int32 {
	return onComm(fn, which, c, func(c *commObject) error {
		_, err := f(c, blocking)
		return err
	})
}

// start begins an operation.
func start(fn string, which int32, c, q uintptr, f collective) int32 {
	return begin(fn, which, c, q, func(c *commObject) (mpi.Request, error) { return f(c, nonblocking) })
}

// prepare makes the persistent request of an operation, which keeps what it needs.
func prepare(fn string, which int32, c, info, q uintptr, keep func(k *retained) collective) int32 {
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
		f := keep(k)
		h := requests.Add(requestObject{
			owner: &c.object,
			again: func() (mpi.Request, error) { return f(k.c, nonblocking) },
			kept:  k,
		})
		if h == 0 {
			k.free()
			return fmt.Errorf("there are as many requests as there can be: %w", mpi.ErrRequest)
		}
		*to = h
		return nil
	})
}

func barrier(c *commObject, how form) (mpi.Request, error) {
	if how == nonblocking {
		return c.Ibarrier()
	}
	return mpi.Request{}, c.Barrier()
}

func bcast(buf uintptr, count int64, t uintptr, root int32) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		if c.Inter() && root == mpi.ProcNull {
			buf, count, t = 0, 0, typeByte // whatever they are
		}
		b, err := used(buf, count, t, all)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Ibcast(b, int(root))
		}
		return mpi.Request{}, c.Bcast(b, int(root))
	}
}

// partners is how many members a collective operation on c has to do with.
func (c *commObject) partners() int {
	if n, err := c.RemoteSize(); c.Inter() && err == nil {
		return n
	}
	return c.Size()
}

// role tells whether the caller is the root, and whether it takes part in what
// goes to or from the root.
func (c *commObject) role(root int32) (is, other bool) {
	if c.Inter() {
		return root == mpi.Root, root != mpi.Root && root != mpi.ProcNull
	}
	return int(root) == c.Rank(), true
}

// whole is a buffer that has a block of count items for each of n members.
func whole(p uintptr, count int64, n int, t uintptr) (mpi.Buffer, error) {
	if count > 0 && n > 0 && count > (1<<63-1)/int64(n) {
		return mpi.Buffer{}, fmt.Errorf("%w: %d items for each of %d members", datatype.ErrTooLarge, count, n)
	}
	return buffer2(p, count*int64(n), t)
}

func gather(sbuf uintptr, scount int64, stype, rbuf uintptr, rcount int64, rtype uintptr, root int32) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		send, recv, err := mpi.Buffer{}, mpi.Buffer{}, error(nil)
		is, other := c.role(root)
		if other {
			send, err = buffer2(sbuf, scount, stype)
		}
		if is && err == nil {
			recv, err = whole(rbuf, rcount, c.partners(), rtype)
		}
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Igather(send, recv, int(root))
		}
		return mpi.Request{}, c.Gather(send, recv, int(root))
	}
}

func scatter(sbuf uintptr, scount int64, stype, rbuf uintptr, rcount int64, rtype uintptr, root int32) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		send, recv, err := mpi.Buffer{}, mpi.Buffer{}, error(nil)
		is, other := c.role(root)
		if is {
			send, err = whole(sbuf, scount, c.partners(), stype)
		}
		if other && err == nil {
			recv, err = buffer2(rbuf, rcount, rtype)
		}
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Iscatter(send, recv, int(root))
		}
		return mpi.Request{}, c.Scatter(send, recv, int(root))
	}
}

// blocks are the arguments of a buffer with blocks of any length.
type blocks struct {
	buf, counts, displs, t uintptr
	which                  int32
}

// take gives the buffer, the counts and the displacements of n blocks.
func (a blocks) take(n int) (mpi.Buffer, []int, []int, error) {
	if a.buf == inPlace {
		return mpi.InPlace, nil, nil, nil
	}
	counts, err := wideInts("counts", a.counts, n, a.which)
	if err != nil {
		return mpi.Buffer{}, nil, nil, err
	}
	displs, err := wideInts("displs", a.displs, n, a.which)
	if err != nil {
		return mpi.Buffer{}, nil, nil, err
	}
	t, err := takeType("datatype", a.t)
	if err != nil {
		return mpi.Buffer{}, nil, nil, err
	}
	first, end := 0, 0
	for i, count := range counts {
		if count == 0 {
			continue // wherever it is
		}
		first = min(first, displs[i])
		end = max(end, displs[i]+count)
	}
	for i := range displs { // all are seen from the first one
		if displs[i] -= first; counts[i] == 0 {
			displs[i] = 0
		}
	}
	b, err := used(a.buf+uintptr(int64(first)*t.Extent()), int64(end-first), a.t, all)
	return b, counts, displs, err
}

func gatherv(sbuf uintptr, scount int64, stype uintptr, to blocks, root int32) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		var send, recv mpi.Buffer
		var counts, displs []int
		var err error
		is, other := c.role(root)
		if other {
			send, err = buffer2(sbuf, scount, stype)
		}
		if is && err == nil {
			recv, counts, displs, err = to.take(c.partners())
		}
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Igatherv(send, recv, counts, displs, int(root))
		}
		return mpi.Request{}, c.Gatherv(send, recv, counts, displs, int(root))
	}
}

func scatterv(from blocks, rbuf uintptr, rcount int64, rtype uintptr, root int32) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		var send, recv mpi.Buffer
		var counts, displs []int
		var err error
		is, other := c.role(root)
		if is {
			send, counts, displs, err = from.take(c.partners())
		}
		if other && err == nil {
			recv, err = buffer2(rbuf, rcount, rtype)
		}
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Iscatterv(send, counts, displs, recv, int(root))
		}
		return mpi.Request{}, c.Scatterv(send, counts, displs, recv, int(root))
	}
}

// The methods that exchanges and reductions call.
type (
	exchanger  func(c *mpi.Comm, send, recv mpi.Buffer) error
	iexchanger func(c *mpi.Comm, send, recv mpi.Buffer) (mpi.Request, error)
	combiner   func(c *mpi.Comm, send, recv mpi.Buffer, op mpi.Op) error
	icombiner  func(c *mpi.Comm, send, recv mpi.Buffer, op mpi.Op) (mpi.Request, error)
)

// exchange is an Allgather, or an Alltoall, of which what is sent has blocks too.
func exchange(sbuf uintptr, scount int64, stype, rbuf uintptr, rcount int64, rtype uintptr, blocks bool, f exchanger, g iexchanger) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		n := c.partners()
		out := 1
		if blocks {
			out = n
		}
		send, recv := mpi.InPlace, mpi.Buffer{}
		var err error
		if sbuf != inPlace {
			send, err = whole(sbuf, scount, out, stype)
		}
		if err == nil {
			recv, err = whole(rbuf, rcount, n, rtype)
		}
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return g(c.Comm, send, recv)
		}
		return mpi.Request{}, f(c.Comm, send, recv)
	}
}

func allgatherv(sbuf uintptr, scount int64, stype uintptr, to blocks) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		send, err := mpi.InPlace, error(nil)
		if sbuf != inPlace {
			send, err = used(sbuf, scount, stype, all)
		}
		if err != nil {
			return mpi.Request{}, err
		}
		recv, counts, displs, err := to.take(c.partners())
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Iallgatherv(send, recv, counts, displs)
		}
		return mpi.Request{}, c.Allgatherv(send, recv, counts, displs)
	}
}

func alltoallv(from, to blocks) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		send, scounts, sdispls, err := from.take(c.partners())
		if err != nil {
			return mpi.Request{}, err
		}
		recv, rcounts, rdispls, err := to.take(c.partners())
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Ialltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
		}
		return mpi.Request{}, c.Alltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	}
}

// pieces gives n buffers with their own datatypes, whose displacements are bytes.
// wide says that those are MPI_Aints whatever the function is called.
func (a blocks) pieces(n int, wide bool) ([]mpi.Buffer, error) {
	if a.buf == inPlace {
		return nil, nil
	}
	counts, err := wideInts("counts", a.counts, n, a.which)
	if err != nil {
		return nil, err
	}
	which := a.which
	if wide {
		which = 1
	}
	displs, err := wideInts("displs", a.displs, n, which)
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
			p, t = 0, typeByte // what has no items needs no datatype
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

func alltoallw(from, to blocks) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		send, err := from.pieces(c.partners(), false)
		if err != nil {
			return mpi.Request{}, err
		}
		recv, err := to.pieces(c.partners(), false)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Ialltoallw(send, recv)
		}
		return mpi.Request{}, c.Alltoallw(send, recv)
	}
}

// operands gives the buffers and the operation of a reduction.
func operands(sbuf, rbuf uintptr, scount, rcount int64, t, op uintptr) (send, recv mpi.Buffer, o mpi.Op, err error) {
	if o, err = opOf(op); err != nil {
		return send, recv, nil, err
	}
	if send, err = buffer2(sbuf, scount, t); err != nil {
		return send, recv, nil, err
	}
	if recv, err = buffer2(rbuf, rcount, t); err == nil && rbuf == inPlace {
		err = fmt.Errorf("%w: argument recvbuf is MPI_IN_PLACE", mpi.ErrBuffer)
	}
	return send, recv, o, err
}

func reduce(sbuf, rbuf uintptr, count int64, t, op uintptr, root int32) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		is, other := c.role(root)
		if !is {
			rbuf = 0 // whatever it is
		}
		if !other {
			sbuf = 0
		}
		if !is && !other {
			count, t = 0, typeByte
		}
		send, recv, o, err := operands(sbuf, rbuf, count, count, t, op)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.Ireduce(send, recv, o, int(root))
		}
		return mpi.Request{}, c.Reduce(send, recv, o, int(root))
	}
}

func combine(sbuf, rbuf uintptr, count int64, t, op uintptr, f combiner, g icombiner) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		send, recv, o, err := operands(sbuf, rbuf, count, count, t, op)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return g(c.Comm, send, recv, o)
		}
		return mpi.Request{}, f(c.Comm, send, recv, o)
	}
}

func reduceScatterBlock(sbuf, rbuf uintptr, count int64, t, op uintptr) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		all, mine := count*int64(c.Size()), count
		if sbuf == inPlace {
			mine = all
		}
		send, recv, o, err := operands(sbuf, rbuf, all, mine, t, op)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.IreduceScatterBlock(send, recv, o)
		}
		return mpi.Request{}, c.ReduceScatterBlock(send, recv, o)
	}
}

func reduceScatter(sbuf, rbuf, counts, t, op uintptr, which int32) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		parts, err := wideInts("recvcounts", counts, c.Size(), which)
		if err != nil {
			return mpi.Request{}, err
		}
		all, mine := 0, parts[c.Rank()]
		for _, n := range parts {
			all += n
		}
		if sbuf == inPlace {
			mine = all
		}
		send, recv, o, err := operands(sbuf, rbuf, int64(all), int64(mine), t, op)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.IreduceScatter(send, recv, parts, o)
		}
		return mpi.Request{}, c.ReduceScatter(send, recv, parts, o)
	}
}

// neighbours gives how many there are to receive from and to send to.
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

// neighborExchange is a Neighbor_allgather, or a Neighbor_alltoall.
func neighborExchange(sbuf uintptr, scount int64, stype, rbuf uintptr, rcount int64, rtype uintptr, all bool) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		in, out, err := c.neighbours()
		if err != nil {
			return mpi.Request{}, err
		}
		f, g := c.NeighborAlltoall, c.IneighborAlltoall
		if !all {
			out, f, g = 1, c.NeighborAllgather, c.IneighborAllgather
		}
		send, err := whole(sbuf, scount, out, stype)
		if err != nil {
			return mpi.Request{}, err
		}
		recv, err := whole(rbuf, rcount, in, rtype)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return g(send, recv)
		}
		return mpi.Request{}, f(send, recv)
	}
}

func neighborAllgatherv(sbuf uintptr, scount int64, stype uintptr, to blocks) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		in, _, err := c.neighbours()
		if err != nil {
			return mpi.Request{}, err
		}
		send, err := used(sbuf, scount, stype, all)
		if err != nil {
			return mpi.Request{}, err
		}
		recv, counts, displs, err := to.take(in)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.IneighborAllgatherv(send, recv, counts, displs)
		}
		return mpi.Request{}, c.NeighborAllgatherv(send, recv, counts, displs)
	}
}

func neighborAlltoallv(from, to blocks) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		in, out, err := c.neighbours()
		if err != nil {
			return mpi.Request{}, err
		}
		send, scounts, sdispls, err := from.take(out)
		if err != nil {
			return mpi.Request{}, err
		}
		recv, rcounts, rdispls, err := to.take(in)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.IneighborAlltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
		}
		return mpi.Request{}, c.NeighborAlltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	}
}

func neighborAlltoallw(from, to blocks) collective {
	return func(c *commObject, how form) (mpi.Request, error) {
		in, out, err := c.neighbours()
		if err != nil {
			return mpi.Request{}, err
		}
		send, err := from.pieces(out, true)
		if err != nil {
			return mpi.Request{}, err
		}
		recv, err := to.pieces(in, true)
		if err != nil {
			return mpi.Request{}, err
		}
		if how == nonblocking {
			return c.IneighborAlltoallw(send, recv)
		}
		return mpi.Request{}, c.NeighborAlltoallw(send, recv)
	}
}
