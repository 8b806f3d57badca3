package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// Piece is a part of memory and the kind of its elements: what Alltoallw sends to one rank, or
// receives from it.
type Piece struct {
	Buf  []byte
	Kind datatype.Kind
}

// Alltoallw sends one piece to each rank, and receives one from each (MPI-4.1, 6.8). Two ranks may
// send each other elements of different kinds. No piece may share memory with another one.
func (p *Planner) Alltoallw(s *Schedule, send, recv []Piece) error {
	o := exchanges{plan: p.begin(s, datatype.Byte)}
	n := o.partners()
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
	if o.remote != nil {
		o.interExchange(
			func(r int) { o.of(send[r].Kind).cast(r, tagInterAlltoall, send[r].Buf) },
			func(r int) { o.of(recv[r].Kind).catch(r, tagInterAlltoall, recv[r].Buf) })
		return o.done(nil)
	}
	if a, b := len(send[o.me].Buf), len(recv[o.me].Buf); a != b {
		return fmt.Errorf("coll: %w: %d bytes to itself, but %d from itself", ErrCount, a, b)
	}
	o.exchange(tagAlltoallv, &shares{list: send}, &shares{list: recv})
	return o.done(nil)
}
