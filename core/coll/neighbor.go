package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// tagNeighbor is that of messages between neighbours, inside a client too. IMPI has no such
// operations; the tag is the project's own.
const tagNeighbor wire.Tag = 350

type neighbours struct {
	comm.Neighbours
	err error
}

// Neighbors returns the caller's neighbours in the communicator's topology (MPI-4.1, 8.6). The
// error is ErrTopology without a topology, and ErrComm for an intercommunicator.
func (p *Planner) Neighbors() (comm.Neighbours, error) {
	n := p.neighbours.Load()
	if n == nil {
		n = p.findNeighbors()
		p.neighbours.Store(n) // another goroutine computes the same neighbours
	}
	return n.Neighbours, n.err
}

func (p *Planner) findNeighbors() *neighbours {
	if err := p.only("an operation of neighbours"); err != nil {
		return &neighbours{err: err}
	}
	t := p.comm.Topology()
	if t == nil {
		return &neighbours{err: fmt.Errorf("coll: %w: the communicator has none, and no neighbours", comm.ErrTopology)}
	}
	n, err := t.Neighbours(p.me)
	return &neighbours{n, err}
}

type neighbourhoods struct{ plan }

// NeighborAllgather sends send to all neighbours and stores their data, all of one length, in recv,
// in the order of the topology (MPI-4.1, 8.6). The block of recv for a neighbour that does not
// exist, MPI_PROC_NULL, is not changed.
func (p *Planner) NeighborAllgather(s *Schedule, send, recv []byte, k datatype.Kind) error {
	n := neighbourhoods{p.begin(s, k)}
	return n.exchange(send, recv, nil, n.evenly)
}

// NeighborAllgatherv is NeighborAllgather of blocks of different lengths: counts and displacements
// are in elements, by neighbour.
func (p *Planner) NeighborAllgatherv(s *Schedule, send, recv []byte, counts, displs []int, k datatype.Kind) error {
	n := neighbourhoods{p.begin(s, k)}
	return n.exchange(send, recv, nil, n.counted(counts, displs))
}

// NeighborAlltoall is NeighborAllgather where each neighbour gets another block of send (MPI-4.1,
// 8.6).
func (p *Planner) NeighborAlltoall(s *Schedule, send, recv []byte, k datatype.Kind) error {
	n := neighbourhoods{p.begin(s, k)}
	return n.exchange(send, recv, n.evenly, n.evenly)
}

// NeighborAlltoallv is NeighborAlltoall of blocks of different lengths.
func (p *Planner) NeighborAlltoallv(s *Schedule, send []byte, scounts, sdispls []int,
	recv []byte, rcounts, rdispls []int, k datatype.Kind) error {
	n := neighbourhoods{p.begin(s, k)}
	return n.exchange(send, recv, n.counted(scounts, sdispls), n.counted(rcounts, rdispls))
}

type division func(name string, buf []byte, n int) (parts, error)

func (p neighbourhoods) counted(counts, displs []int) division {
	return func(name string, buf []byte, n int) (parts, error) { return p.layout(name, buf, counts, displs, n) }
}

// evenly divides into blocks of one length. There may be no neighbours.
func (p neighbourhoods) evenly(name string, buf []byte, n int) (parts, error) {
	if n == 0 {
		if len(buf) > 0 {
			return parts{}, fmt.Errorf("coll: %w: %s of %d bytes, and no neighbours", ErrBuffer, name, len(buf))
		}
		return parts{}, nil
	}
	block, err := equalBlocks(name, buf, p.k, n)
	return even(buf, block), err
}

// exchange sends each neighbour its part of send, or all of it if from is nil, and
// receives its part of recv.
func (p neighbourhoods) exchange(send, recv []byte, from, to division) error {
	n, err := p.Neighbors()
	if err == nil {
		err = checkPair(send, recv, p.k)
	}
	if err != nil {
		return err
	}
	out, in := shares{whole: send, kind: p.k}, shares{kind: p.k}
	if from != nil {
		out.whole = nil
		if out.parts, err = from("the send buffer", send, len(n.Out)); err != nil {
			return err
		}
	}
	if in.parts, err = to("the receive buffer", recv, len(n.In)); err != nil {
		return err
	}
	return p.meetNeighbors(&n, out, in)
}

// NeighborAlltoallw is NeighborAlltoall of pieces that each have their own memory
// and kind.
func (p *Planner) NeighborAlltoallw(s *Schedule, send, recv []Piece) error {
	o := neighbourhoods{p.begin(s, datatype.Byte)}
	n, err := o.Neighbors()
	if err != nil {
		return err
	}
	if len(send) != len(n.Out) || len(recv) != len(n.In) {
		return fmt.Errorf("coll: %w: %d pieces to send to %d neighbours and %d to receive from %d",
			ErrCount, len(send), len(n.Out), len(recv), len(n.In))
	}
	for _, list := range [][]Piece{send, recv} {
		for i := range list {
			if err := checkBuffer("a buffer", list[i].Buf, list[i].Kind); err != nil {
				return err
			}
		}
	}
	return o.meetNeighbors(&n, shares{list: send}, shares{list: recv})
}

// shares are what goes to neighbours or comes from them: a part of a buffer for each, the whole
// buffer for each, or a list of pieces.
type shares struct {
	parts
	whole []byte
	list  []Piece
	kind  datatype.Kind
}

func (b *shares) at(i int) ([]byte, datatype.Kind) {
	switch {
	case b.list != nil:
		return b.list[i].Buf, b.list[i].Kind
	case b.whole != nil:
		return b.whole, b.kind
	}
	return b.parts.at(i), b.kind
}

// meetNeighbors sends to all neighbours and receives from all in one round: a process that waited
// for some of them first could wait for ever, since neighbours need not be in any order. Empty
// shares do not travel.
func (p neighbourhoods) meetNeighbors(n *comm.Neighbours, from, to shares) error {
	err := p.ownEdges(n, &from, &to)
	if err != nil {
		return err
	}
	for i, source := range n.In {
		if part, k := to.at(i); source != comm.ProcNull && source != p.me && len(part) > 0 {
			p.of(k).recv(source, tagNeighbor, part)
		}
	}
	for i := range n.Out {
		i = n.OutIndex(i)
		if part, k := from.at(i); n.Out[i] != comm.ProcNull && n.Out[i] != p.me && len(part) > 0 {
			p.of(k).send(n.Out[i], tagNeighbor, part)
		}
	}
	return p.done(nil)
}

func (p neighbourhoods) ownEdges(n *comm.Neighbours, from, to *shares) error {
	at := 0
	next := func() int {
		for at < len(n.In) && n.In[at] != p.me {
			at++
		}
		at++
		return at - 1
	}
	for i := range n.Out {
		i = n.OutIndex(i)
		if n.Out[i] != p.me {
			continue
		}
		in := next()
		if in >= len(n.In) {
			return fmt.Errorf("coll: %w: rank %d has more edges to itself than from itself", comm.ErrTopology, p.me)
		}
		out, _ := from.at(i)
		into, _ := to.at(in)
		if len(out) != len(into) {
			return fmt.Errorf("coll: %w: %d bytes to itself, but %d from itself", ErrCount, len(out), len(into))
		}
		p.copy(into, out)
	}
	if next() < len(n.In) {
		return fmt.Errorf("coll: %w: rank %d has more edges from itself than to itself", comm.ErrTopology, p.me)
	}
	return nil
}
