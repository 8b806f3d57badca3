package collective

import (
	"bytes"
	"fmt"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

func (s *staging) bcast(b proc.Buffer, root int) {
	is, other := s.root(root)
	switch {
	case is:
		s.call.Send = s.send(b)
	case other:
		s.call.Send = s.recv(b, false)
	}
}

func (s *staging) gather(send, recv proc.Buffer, root int) {
	is, other := s.root(root)
	if is {
		s.distinct(&send, &recv)
		s.call.recv = s.recv(recv, s.inPlace(&send))
	}
	if other && !(is && s.inPlace(&send)) {
		s.call.Send = s.send(send)
	}
}

func (s *staging) gatherv(send, recv proc.Buffer, counts, displs []int, root int) {
	is, other := s.root(root)
	if is {
		s.call.recv, s.call.counts, s.call.displs = s.blocks(recv, counts, displs, s.partners(), true, s.inPlace(&send))
	}
	if other && !(is && s.inPlace(&send)) {
		s.call.Send = s.send(send)
	}
}

func (s *staging) scatter(send, recv proc.Buffer, root int) {
	is, other := s.root(root)
	if is {
		s.distinct(&send, &recv)
		s.call.Send = s.send(send)
	}
	if other && !(is && s.inPlace(&recv)) {
		s.call.recv = s.recv(recv, false)
	}
}

func (s *staging) scatterv(send proc.Buffer, counts, displs []int, recv proc.Buffer, root int) {
	is, other := s.root(root)
	if is {
		s.call.Send, s.call.counts, s.call.displs = s.blocks(send, counts, displs, s.partners(), false, false)
	}
	if other && !(is && s.inPlace(&recv)) {
		s.call.recv = s.recv(recv, false)
	}
}

func (s *staging) allgather(send, recv proc.Buffer) {
	in := s.inPlace(&send)
	s.distinct(&send, &recv)
	s.call.recv = s.recv(recv, in)
	if !in {
		s.call.Send = s.send(send)
	}
}

func (s *staging) allgatherv(send, recv proc.Buffer, counts, displs []int) {
	in := s.inPlace(&send)
	s.call.recv, s.call.counts, s.call.displs = s.blocks(recv, counts, displs, s.partners(), true, in)
	if !in {
		s.call.Send = s.send(send)
	}
}

func (s *staging) alltoall(send, recv proc.Buffer) { s.allgather(send, recv) }

func (s *staging) alltoallv(send proc.Buffer, scounts, sdispls []int, recv proc.Buffer, rcounts, rdispls []int) {
	in := s.inPlace(&send)
	a := &s.call
	a.recv, a.rcounts, a.rdispls = s.blocks(recv, rcounts, rdispls, s.partners(), true, in)
	if !in {
		a.Send, a.counts, a.displs = s.blocks(send, scounts, sdispls, s.partners(), false, false)
	}
}

func (s *staging) alltoallw(send, recv []proc.Buffer) {
	in := send == nil && s.err == nil && !s.c.Inter()
	if in {
		send = recv
	}
	if n := s.partners(); s.err == nil && (len(send) != n || len(recv) != n) {
		s.fail(fmt.Errorf("%w: %d buffers to send and %d to receive into for %d ranks", coll.ErrCount, len(send), len(recv), n))
		return
	}
	for i := range send {
		if !in {
			s.distinct(&send[i], &recv[i])
		}
		out := s.piece(send[i], func(b proc.Buffer) []byte { return s.send(b) })
		if in {
			out.Buf = bytes.Clone(out.Buf)
		}
		s.call.out = append(s.call.out, out)
	}
	for i := range recv {
		s.call.in = append(s.call.in, s.piece(recv[i], func(b proc.Buffer) []byte { return s.recv(b, false) }))
	}
}

// piece returns one buffer of Alltoallw as a piece, which may have elements of any kind.
func (s *staging) piece(b proc.Buffer, take func(proc.Buffer) []byte) coll.Piece {
	s.typed, s.call.Kind = false, datatype.Byte
	mem := take(b)
	return coll.Piece{Buf: mem, Kind: s.call.Kind}
}

func (s *staging) partners() int {
	if s.err != nil {
		return 0
	}
	return s.c.Partners().Size()
}
