package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// tagNeighbor is that of messages between neighbours, inside a client too. IMPI
// knows no such operations; this is the project's own profile.
const tagNeighbor wire.Tag = 350

// neighbours are those of the calling process.
type neighbours struct {
	comm.Neighbours
	err error
}

// Neighbors gives those that the communicator's topology has for the caller. It
// is ErrTopology without a topology, and ErrComm of an intercommunicator.
func (p *Planner) Neighbors() (comm.Neighbours, error) {
	n := p.neighbours.Load()
	if n == nil {
		n = p.findNeighbors()
		p.neighbours.Store(n) // whoever else finds them finds the same
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

// NeighborAllgather sends send to all neighbours and puts what comes from them,
// all of one length, into recv, in the order of the topology. What belongs to a
// neighbour that does not exist stays as it is.
func (p *Planner) NeighborAllgather(s *Schedule, send, recv []byte, k datatype.Kind) error {
	s.Reset()
	n, err := p.neighborPair(send, recv, k)
	if err != nil {
		return err
	}
	to, err := blocksOf("the receive buffer", recv, k, len(n.In))
	if err != nil {
		return err
	}
	return p.meetNeighbors(s, &n, shares{parts: even(send, 0), whole: send, kind: k}, shares{parts: to, kind: k})
}

// NeighborAllgatherv is NeighborAllgather of different lengths: counts and
// displacements are in elements, by neighbour.
func (p *Planner) NeighborAllgatherv(s *Schedule, send, recv []byte, counts, displs []int, k datatype.Kind) error {
	s.Reset()
	n, err := p.neighborPair(send, recv, k)
	if err != nil {
		return err
	}
	to, err := s.layout("the receive buffer", recv, counts, displs, k, len(n.In))
	if err != nil {
		return err
	}
	return p.meetNeighbors(s, &n, shares{parts: even(send, 0), whole: send, kind: k}, shares{parts: to, kind: k})
}

// NeighborAlltoall is NeighborAllgather where each neighbour gets a block of its
// own of send.
func (p *Planner) NeighborAlltoall(s *Schedule, send, recv []byte, k datatype.Kind) error {
	s.Reset()
	n, err := p.neighborPair(send, recv, k)
	if err != nil {
		return err
	}
	from, err := blocksOf("the send buffer", send, k, len(n.Out))
	if err != nil {
		return err
	}
	to, err := blocksOf("the receive buffer", recv, k, len(n.In))
	if err != nil {
		return err
	}
	return p.meetNeighbors(s, &n, shares{parts: from, kind: k}, shares{parts: to, kind: k})
}

// NeighborAlltoallv is NeighborAlltoall of blocks of different lengths.
func (p *Planner) NeighborAlltoallv(s *Schedule, send []byte, scounts, sdispls []int,
	recv []byte, rcounts, rdispls []int, k datatype.Kind) error {
	s.Reset()
	n, err := p.neighborPair(send, recv, k)
	if err != nil {
		return err
	}
	from, err := s.layout("the send buffer", send, scounts, sdispls, k, len(n.Out))
	if err != nil {
		return err
	}
	to, err := s.layout("the receive buffer", recv, rcounts, rdispls, k, len(n.In))
	if err != nil {
		return err
	}
	return p.meetNeighbors(s, &n, shares{parts: from, kind: k}, shares{parts: to, kind: k})
}

// NeighborAlltoallw is NeighborAlltoall of pieces that each have their own memory
// and kind.
func (p *Planner) NeighborAlltoallw(s *Schedule, send, recv []Piece) error {
	s.Reset()
	n, err := p.Neighbors()
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
	return p.meetNeighbors(s, &n, shares{list: send}, shares{list: recv})
}

// Sparse sends parts of send to some members and receives parts of recv from
// some, each listed once; counts are in elements, and the parts follow each other.
func (p *Planner) Sparse(s *Schedule, out []int, send []byte, scounts []int, in []int, recv []byte, rcounts []int, k datatype.Kind) error {
	s.Reset()
	from, err := s.layout("the send buffer", send, scounts, nil, k, len(out))
	if err != nil {
		return err
	}
	to, err := s.layout("the receive buffer", recv, rcounts, nil, k, len(in))
	if err != nil {
		return err
	}
	return p.meetNeighbors(s, &comm.Neighbours{In: in, Out: out}, shares{parts: from, kind: k}, shares{parts: to, kind: k})
}

// neighborPair checks the buffers of an operation of neighbours.
func (p *Planner) neighborPair(send, recv []byte, k datatype.Kind) (comm.Neighbours, error) {
	n, err := p.Neighbors()
	if err == nil {
		err = checkPair(send, recv, k)
	}
	return n, err
}

// blocksOf divides a buffer among n neighbours, of which there may be none.
func blocksOf(name string, buf []byte, k datatype.Kind, n int) (parts, error) {
	if n == 0 {
		if len(buf) > 0 {
			return parts{}, fmt.Errorf("coll: %w: %s of %d bytes, and no neighbours", ErrBuffer, name, len(buf))
		}
		return parts{}, nil
	}
	block, err := equalBlocks(name, buf, k, n)
	return even(buf, block), err
}

// shares are what goes to neighbours or comes from them: parts of a buffer, the
// whole of one for each, or a list.
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

// meetNeighbors has everybody send to all that it sends to, and receive from all
// that it receives from, in one round: who waited for some first might wait for
// ever. Empty ones do not travel.
func (p *Planner) meetNeighbors(s *Schedule, n *comm.Neighbours, from, to shares) error {
	err := p.ownEdges(s, n, &from, &to)
	if err != nil {
		return err
	}
	for i, source := range n.In {
		if part, k := to.at(i); source != comm.ProcNull && source != p.me && len(part) > 0 {
			p.recv(s, source, tagNeighbor, part, k)
		}
	}
	for i := range n.Out {
		i = n.Turn(i)
		if part, k := from.at(i); n.Out[i] != comm.ProcNull && n.Out[i] != p.me && len(part) > 0 {
			p.send(s, n.Out[i], tagNeighbor, part, k)
		}
	}
	s.finish()
	return nil
}

// ownEdges copies what the caller sends to itself.
func (p *Planner) ownEdges(s *Schedule, n *comm.Neighbours, from, to *shares) error {
	at := 0
	next := func() int {
		for at < len(n.In) && n.In[at] != p.me {
			at++
		}
		at++
		return at - 1
	}
	for i := range n.Out {
		i = n.Turn(i)
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
		s.copy(into, out)
	}
	if next() < len(n.In) {
		return fmt.Errorf("coll: %w: rank %d has more edges from itself than to itself", comm.ErrTopology, p.me)
	}
	return nil
}
