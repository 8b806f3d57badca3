package mpi

import (
	"bytes"
	"fmt"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
)

func (s *staging) bcast(b Buffer, root int) {
	is, other := s.root(root)
	switch {
	case is:
		s.call.send = s.send(b)
	case other:
		s.call.send = s.recv(b, false)
	}
}

func (s *staging) gather(send, recv Buffer, root int) {
	is, other := s.root(root)
	if is {
		s.call.recv = s.recv(recv, s.inPlace(&send))
	}
	if other && !(is && s.inPlace(&send)) {
		s.call.send = s.send(send)
	}
}

func (s *staging) gatherv(send, recv Buffer, counts, displs []int, root int) {
	is, other := s.root(root)
	if is {
		s.call.recv, s.call.counts, s.call.displs = s.blocks(recv, counts, displs, s.partners(), true, s.inPlace(&send))
	}
	if other && !(is && s.inPlace(&send)) {
		s.call.send = s.send(send)
	}
}

func (s *staging) scatter(send, recv Buffer, root int) {
	is, other := s.root(root)
	if is {
		s.call.send = s.send(send)
	}
	if other && !(is && s.inPlace(&recv)) {
		s.call.recv = s.recv(recv, false)
	}
}

func (s *staging) scatterv(send Buffer, counts, displs []int, recv Buffer, root int) {
	is, other := s.root(root)
	if is {
		s.call.send, s.call.counts, s.call.displs = s.blocks(send, counts, displs, s.partners(), false, false)
	}
	if other && !(is && s.inPlace(&recv)) {
		s.call.recv = s.recv(recv, false)
	}
}

func (s *staging) allgather(send, recv Buffer) {
	in := s.inPlace(&send)
	s.call.recv = s.recv(recv, in)
	if !in {
		s.call.send = s.send(send)
	}
}

func (s *staging) allgatherv(send, recv Buffer, counts, displs []int) {
	in := s.inPlace(&send)
	s.call.recv, s.call.counts, s.call.displs = s.blocks(recv, counts, displs, s.partners(), true, in)
	if !in {
		s.call.send = s.send(send)
	}
}

func (s *staging) alltoall(send, recv Buffer) { s.allgather(send, recv) }

func (s *staging) alltoallv(send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int) {
	in := s.inPlace(&send)
	a := &s.call
	a.recv, a.rcounts, a.rdispls = s.blocks(recv, rcounts, rdispls, s.partners(), true, in)
	if !in {
		a.send, a.counts, a.displs = s.blocks(send, scounts, sdispls, s.partners(), false, false)
	}
}

func (s *staging) alltoallw(send, recv []Buffer) {
	in := send == nil && s.err == nil && !s.c.Inter()
	if in {
		send = recv
	}
	if n := s.partners(); s.err == nil && (len(send) != n || len(recv) != n) {
		s.fail(fmt.Errorf("%w: %d buffers to send and %d to receive into for %d ranks", coll.ErrCount, len(send), len(recv), n))
		return
	}
	for i := range send {
		out := s.piece(send[i], func(b Buffer) []byte { return s.send(b) })
		if in {
			out.Buf = bytes.Clone(out.Buf)
		}
		s.call.out = append(s.call.out, out)
	}
	for i := range recv {
		s.call.in = append(s.call.in, s.piece(recv[i], func(b Buffer) []byte { return s.recv(b, false) }))
	}
}

// piece is one buffer of Alltoallw, whose elements are of any kind.
func (s *staging) piece(b Buffer, take func(Buffer) []byte) coll.Piece {
	s.typed, s.call.kind = false, datatype.Byte
	mem := take(b)
	return coll.Piece{Buf: mem, Kind: s.call.kind}
}

// partners is how many ranks there are to exchange with.
func (s *staging) partners() int {
	if s.err != nil {
		return 0
	}
	return s.c.Partners().Size()
}
