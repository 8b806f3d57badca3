package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// Messages of constructors among our own sites are in the context of collectives.
// What keeps them apart from those are ranks that no communicator has.
const (
	leaders wire.CommRank = 1 << 27 // of IntercommCreate; the tag is the program's
	inOrder wire.CommRank = 1 << 28 // the tag counts the constructors of the communicator
	byTag   wire.CommRank = 1 << 29 // of CreateGroup; the tag is the program's
	byStep  wire.CommRank = 3 << 28 // of connecting; the tag is the constructor's number and the step
)

// talk is how a constructor's members exchange messages. Its process is locked.
type talk struct {
	p     *process
	group *comm.Group      // who is to be talked to, by rank
	names *comm.Group      // whose ranks tell senders apart; nil: those of group
	self  message.Envelope // of messages from here; the ranks of others count from base
	base  wire.CommRank
}

// talk makes a conversation with the partners of c, in its context of collectives.
func (c *Comm) talk(base wire.CommRank, tag wire.Tag) talk {
	self := message.Envelope{Context: c.CollectiveContext(), Rank: base + wire.CommRank(c.Rank()), Tag: tag}
	return talk{p: c.p, group: c.Partners(), self: self, base: base}
}

func (t *talk) peer(rank int) message.Peer {
	proc, _ := t.group.At(rank)
	return message.Peer(proc)
}

// send begins to send b, which must not change until it is done.
func (t *talk) send(rank int, b []byte) *message.Request {
	to := t.peer(rank)
	r := t.p.eng.Send(to, t.self, message.Standard, b, int64(len(b)), uint64(datatype.Byte))
	t.p.send(to, len(b), true)
	return r
}

// recv begins to receive into b.
func (t *talk) recv(rank int, b []byte) *message.Request {
	from := t.peer(rank)
	if t.names != nil {
		rank, _ = t.names.Rank(comm.Proc(from))
	}
	env := message.Envelope{Context: t.self.Context, Rank: t.base + wire.CommRank(rank), Tag: t.self.Tag}
	r := t.p.eng.Recv(env, from, b)
	t.p.began(r)
	return r
}

// done waits for r, gives it back and tells how many bytes it was about.
func (t *talk) done(r *message.Request) (int, error) {
	t.p.wait(r)
	if !r.Done() {
		return 0, t.p.end(r, nil)
	}
	n := int(r.Status().Len)
	return n, t.p.end(r, nil)
}

// A letter is a message of any length: as it is not known beforehand, what
// exceeds a page follows in a message of its own.
const (
	page      = 512
	lengthLen = 4
)

// letter makes room for a letter's length, after which its text is appended.
func letter() []byte { return make([]byte, lengthLen, page) }

// sending is a send of a constructor or a window under way.
type sending = *message.Request

// post begins to send a letter.
func (t *talk) post(rank int, l []byte) []*message.Request {
	binary.BigEndian.PutUint32(l, uint32(len(l)))
	first := t.send(rank, l[:min(page, len(l))])
	if len(l) <= page {
		return []*message.Request{first}
	}
	return []*message.Request{first, t.send(rank, l[page:])}
}

// read receives the text of a letter, of at most limit bytes.
func (t *talk) read(rank, limit int) ([]byte, error) {
	l := make([]byte, page)
	n, err := t.done(t.recv(rank, l))
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", rank, err)
	}
	if n < lengthLen {
		return nil, fmt.Errorf("%w: %d bytes from rank %d", comm.ErrMessage, n, rank)
	}
	all := int(binary.BigEndian.Uint32(l))
	if all < lengthLen || all > limit+lengthLen || n != min(all, page) {
		return nil, fmt.Errorf("%w: rank %d has sent %d of %d bytes, at most %d are expected", comm.ErrMessage, rank, n, all, limit)
	}
	if all > page {
		l = append(make([]byte, 0, all), l...)[:all]
		if n, err = t.done(t.recv(rank, l[page:])); err == nil && n != all-page {
			err = fmt.Errorf("%w: %d bytes instead of %d", comm.ErrMessage, n, all-page)
		}
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return l[lengthLen:all], nil
}

// sent waits for sends.
func (t *talk) sent(requests []*message.Request) (err error) {
	for _, r := range requests {
		if _, e := t.done(r); err == nil {
			err = e
		}
	}
	return err
}
