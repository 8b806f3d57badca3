package construct

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Messages of constructors among our own sites are in the context of collectives.
// What keeps them apart from those are ranks that no communicator has.
const (
	Leaders wire.CommRank = 1 << 27 // of IntercommCreate; the tag is the program's
	InOrder wire.CommRank = 1 << 28 // the tag counts the constructors of the communicator
	ByTag   wire.CommRank = 1 << 29 // of CreateGroup; the tag is the program's
	ByStep  wire.CommRank = 3 << 28 // of connecting; the tag is the constructor's number and the step
)

// Talk is how a constructor's members exchange messages. Its process is locked.
type Talk struct {
	P     *proc.Process
	Group *comm.Group      // who is to be talked to, by rank
	names *comm.Group      // whose ranks tell senders apart; nil: those of group
	Self  message.Envelope // of messages from here; the ranks of others count from base
	Base  wire.CommRank
}

// NewTalk makes a conversation with the partners of c, in its context of collectives.
func NewTalk(c *proc.Comm, base wire.CommRank, tag wire.Tag) Talk {
	self := message.Envelope{Context: c.CollectiveContext(), Rank: base + wire.CommRank(c.Rank()), Tag: tag}
	return Talk{P: c.Process(), Group: c.Partners(), Self: self, Base: base}
}

func (t *Talk) peer(rank int) message.Peer {
	proc, _ := t.Group.At(rank)
	return message.Peer(proc)
}

// Send begins to send b, which must not change until it is done.
func (t *Talk) Send(rank int, b []byte) *message.Request {
	to := t.peer(rank)
	r := t.P.Eng.Send(to, t.Self, message.Standard, b, int64(len(b)), uint64(datatype.Byte))
	t.P.Endpoints.Send(to, len(b), true)
	return r
}

// Recv begins to receive into b.
func (t *Talk) Recv(rank int, b []byte) *message.Request {
	from := t.peer(rank)
	if t.names != nil {
		rank, _ = t.names.Rank(comm.Proc(from))
	}
	env := message.Envelope{Context: t.Self.Context, Rank: t.Base + wire.CommRank(rank), Tag: t.Self.Tag}
	r := t.P.Eng.Recv(env, from, b)
	t.P.Endpoints.Began(r)
	return r
}

// Done waits for r, gives it back and tells how many bytes it was about.
func (t *Talk) Done(r *message.Request) (int, error) {
	t.P.Wait(r)
	if !r.Done() {
		return 0, t.P.End(r, nil)
	}
	n := int(r.Status().Len)
	return n, t.P.End(r, nil)
}

// A letter is a message of any length: as it is not known beforehand, what
// exceeds a page follows in a message of its own.
const (
	page      = 512
	LengthLen = 4
)

// Letter makes room for a letter's length, after which its text is appended.
func Letter() []byte { return make([]byte, LengthLen, page) }

// Sending is a send of a constructor or a window under way.
type Sending = *message.Request

// Post begins to send a letter.
func (t *Talk) Post(rank int, l []byte) []*message.Request {
	binary.BigEndian.PutUint32(l, uint32(len(l)))
	first := t.Send(rank, l[:min(page, len(l))])
	if len(l) <= page {
		return []*message.Request{first}
	}
	return []*message.Request{first, t.Send(rank, l[page:])}
}

// Read receives the text of a letter, of at most limit bytes.
func (t *Talk) Read(rank, limit int) ([]byte, error) {
	l := make([]byte, page)
	n, err := t.Done(t.Recv(rank, l))
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", rank, err)
	}
	if n < LengthLen {
		return nil, fmt.Errorf("%w: %d bytes from rank %d", comm.ErrMessage, n, rank)
	}
	all := int(binary.BigEndian.Uint32(l))
	if all < LengthLen || all > limit+LengthLen || n != min(all, page) {
		return nil, fmt.Errorf("%w: rank %d has sent %d of %d bytes, at most %d are expected", comm.ErrMessage, rank, n, all, limit)
	}
	if all > page {
		l = append(make([]byte, 0, all), l...)[:all]
		if n, err = t.Done(t.Recv(rank, l[page:])); err == nil && n != all-page {
			err = fmt.Errorf("%w: %d bytes instead of %d", comm.ErrMessage, n, all-page)
		}
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return l[LengthLen:all], nil
}

// Sent waits for sends.
func (t *Talk) Sent(requests []*message.Request) (err error) {
	for _, r := range requests {
		if _, e := t.Done(r); err == nil {
			err = e
		}
	}
	return err
}
