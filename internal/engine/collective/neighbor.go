package collective

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// neighbors returns the neighbours of this member. gaps reports whether some are MPI_PROC_NULL; the
// items of the buffers that are theirs must stay as they are (MPI-4.1, 8.6).
func (s *staging) neighbors() (n comm.Neighbours, gaps bool) {
	if s.err != nil {
		return n, false
	}
	n, err := CollectivePlanner(s.c).Neighbors()
	if err != nil {
		s.fail(err)
	}
	return n, slices.Contains(n.In, proc.ProcNull)
}

func (s *staging) neighborAllgather(send, recv proc.Buffer) {
	_, gaps := s.neighbors()
	s.call.Send, s.call.recv = s.send(send), s.recv(recv, gaps)
}

func (s *staging) neighborAllgatherv(send, recv proc.Buffer, counts, displs []int) {
	n, gaps := s.neighbors()
	s.call.Send = s.send(send)
	s.call.recv, s.call.counts, s.call.displs = s.blocks(recv, counts, displs, len(n.In), true, gaps)
}

func (s *staging) neighborAlltoallv(send proc.Buffer, scounts, sdispls []int, recv proc.Buffer, rcounts, rdispls []int) {
	n, gaps := s.neighbors()
	a := &s.call
	a.Send, a.counts, a.displs = s.blocks(send, scounts, sdispls, len(n.Out), false, false)
	a.recv, a.rcounts, a.rdispls = s.blocks(recv, rcounts, rdispls, len(n.In), true, gaps)
}

// neighborAlltoallw stages NeighborAlltoallw, leaving out the buffers of neighbours that do not
// exist.
func (s *staging) neighborAlltoallw(send, recv []proc.Buffer) {
	n, _ := s.neighbors()
	if s.err == nil && (len(send) != len(n.Out) || len(recv) != len(n.In)) {
		s.fail(fmt.Errorf("%w: %d buffers to send to %d neighbours and %d to receive from %d",
			coll.ErrCount, len(send), len(n.Out), len(recv), len(n.In)))
	}
	if s.err != nil {
		return
	}
	none := coll.Piece{Kind: datatype.Byte}
	s.call.out = make([]coll.Piece, 0, len(send))
	for i := range send {
		piece := none
		if n.Out[i] != proc.ProcNull {
			piece = s.piece(send[i], s.send)
		}
		s.call.out = append(s.call.out, piece)
	}
	s.call.in = make([]coll.Piece, 0, len(recv))
	for i := range recv {
		piece := none
		if n.In[i] != proc.ProcNull {
			piece = s.piece(recv[i], func(b proc.Buffer) []byte { return s.recv(b, false) })
		}
		s.call.in = append(s.call.in, piece)
	}
}
