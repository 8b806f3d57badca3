package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// Piece is what Alltoallw sends to one rank, or gets from it.
type Piece struct {
	Buf  []byte
	Kind datatype.Kind
}

// Alltoallw sends each rank its piece, and gets a piece from each. What two ranks
// send each other need not be of one kind. All pieces are in their own memory.
func (p *Planner) Alltoallw(s *Schedule, send, recv []Piece) error {
	s.Reset()
	n := p.partners()
	if len(send) != n || len(recv) != n {
		return fmt.Errorf("coll: %w: %d pieces to send and %d to receive, there are %d ranks", ErrCount, len(send), len(recv), n)
	}
	for r := range n {
		if err := checkBuffer("a send buffer", send[r].Buf, send[r].Kind); err != nil {
			return err
		}
		if err := checkBuffer("a receive buffer", recv[r].Buf, recv[r].Kind); err != nil {
			return err
		}
	}
	if p.remote != nil {
		p.interExchange(s,
			func(s *Schedule, r int) { p.cast(s, r, tagInterAlltoall, send[r].Buf, send[r].Kind) },
			func(s *Schedule, r int) { p.catch(s, r, tagInterAlltoall, recv[r].Buf, recv[r].Kind) })
		s.finish()
		return nil
	}
	if a, b := len(send[p.me].Buf), len(recv[p.me].Buf); a != b {
		return fmt.Errorf("coll: %w: %d bytes to itself, but %d from itself", ErrCount, a, b)
	}
	s.copy(recv[p.me].Buf, send[p.me].Buf)
	for i := 1; i < n; i++ {
		dest, source := (p.me+i)%n, (p.me-i+n)%n
		p.recv(s, source, tagAlltoallv, recv[source].Buf, recv[source].Kind)
		p.send(s, dest, tagAlltoallv, send[dest].Buf, send[dest].Kind)
		if i%atOnce == 0 {
			s.wait()
		}
	}
	s.finish()
	return nil
}
