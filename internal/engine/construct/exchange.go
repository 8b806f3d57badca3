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

// Messages of constructors among procs of this library are in the context of collectives (IMPI
// ch.4, Context IDs). They cannot match messages of collectives, since their sender ranks are ranks
// that no communicator has.
const (
	LeadersBase wire.CommRank = 1 << 27 // of IntercommCreate; the tag is the program's
	InOrderBase wire.CommRank = 1 << 28 // the tag counts the constructors of the communicator
	ByTagBase   wire.CommRank = 1 << 29 // of CreateGroup; the tag is the program's
	ByStepBase  wire.CommRank = 3 << 28 // of connecting; the tag is the constructor's number and the step
)

// The interfaces of a locked proc that an exchange needs: the endpoints, where messages are begun,
// the proc itself, which waits for them, and the memory layout of other procs' elements.
type (
	endpoints interface {
		IsendBytes(to message.Peer, env message.Envelope, b []byte) *message.Request
		IrecvBytes(env message.Envelope, from message.Peer, b []byte) *message.Request
	}
	waiter interface {
		Wait(r *message.Request)
		End(r *message.Request, items *proc.Stream) error
	}
	conversion interface {
		DataOf(peer message.Peer) datatype.Representation
	}
)

// Exchange sends and receives the messages of a constructor's members.
type Exchange struct {
	endpoints endpoints
	waiter    waiter
	data      conversion

	Group *comm.Group      // the other members, by rank
	names *comm.Group      // its ranks name the senders; nil: Group
	Self  message.Envelope // envelope of own messages; base is added to other ranks
	Base  wire.CommRank
}

// NewExchange makes an exchange with the partners of c, in its context of collectives.
func NewExchange(c *proc.Comm, base wire.CommRank, tag wire.Tag) Exchange {
	self := message.Envelope{Context: c.CollectiveContext(), Rank: base + wire.CommRank(c.Rank()), Tag: tag}
	return ExchangeOf(c.Process(), c.Partners(), self, base)
}

// ExchangeOf makes an exchange of p with the members of a group. self is the envelope of the
// messages that p sends; base is added to the ranks of the others in their messages.
func ExchangeOf(p *proc.Process, g *comm.Group, self message.Envelope, base wire.CommRank) Exchange {
	return Exchange{endpoints: &p.Endpoints, waiter: p, data: &p.Data, Group: g, Self: self, Base: base}
}

func (t *Exchange) peer(rank int) message.Peer {
	proc, _ := t.Group.At(rank)
	return message.Peer(proc)
}

// Isend begins to send b, which must not change until the request is done.
func (t *Exchange) Isend(rank int, b []byte) *message.Request {
	return t.endpoints.IsendBytes(t.peer(rank), t.Self, b)
}

// Irecv begins to receive into b, which belongs to the exchange until Done.
func (t *Exchange) Irecv(rank int, b []byte) *message.Request {
	from := t.peer(rank)
	if t.names != nil {
		rank, _ = t.names.Rank(comm.Proc(from))
	}
	env := message.Envelope{Context: t.Self.Context, Rank: t.Base + wire.CommRank(rank), Tag: t.Self.Tag}
	return t.endpoints.IrecvBytes(env, from, b)
}

// Done waits for r, releases it and returns its number of bytes.
func (t *Exchange) Done(r *message.Request) (int, error) {
	t.waiter.Wait(r)
	if !r.Done() {
		return 0, t.waiter.End(r, nil)
	}
	n := int(r.Status().Len)
	return n, t.waiter.End(r, nil)
}

// A sized message begins with its length, since the receiver does not know it. The part that
// exceeds a page follows in a second message.
const (
	page        = 512
	SizedHeader = 4
)

// NewSizedMessage begins a sized message: it has room for the length, and the caller appends the
// text.
func NewSizedMessage() []byte { return make([]byte, SizedHeader, page) }

// Sending is a send of a constructor or a window under way.
type Sending = *message.Request

// IsendSized begins to send a sized message.
func (t *Exchange) IsendSized(rank int, l []byte) []*message.Request {
	binary.BigEndian.PutUint32(l, uint32(len(l)))
	first := t.Isend(rank, l[:min(page, len(l))])
	if len(l) <= page {
		return []*message.Request{first}
	}
	return []*message.Request{first, t.Isend(rank, l[page:])}
}

// RecvSized receives the text of a sized message, of at most limit bytes.
func (t *Exchange) RecvSized(rank, limit int) ([]byte, error) {
	l := make([]byte, page)
	n, err := t.Done(t.Irecv(rank, l))
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", rank, err)
	}
	if n < SizedHeader {
		return nil, fmt.Errorf("%w: %d bytes from rank %d", comm.ErrMessage, n, rank)
	}
	all := int(binary.BigEndian.Uint32(l))
	if all < SizedHeader || all > limit+SizedHeader || n != min(all, page) {
		return nil, fmt.Errorf("%w: rank %d has sent %d of %d bytes, at most %d are expected", comm.ErrMessage, rank, n, all, limit)
	}
	if all > page {
		l = append(make([]byte, 0, all), l...)[:all]
		if n, err = t.Done(t.Irecv(rank, l[page:])); err == nil && n != all-page {
			err = fmt.Errorf("%w: %d bytes instead of %d", comm.ErrMessage, n, all-page)
		}
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return l[SizedHeader:all], nil
}

// WaitSends blocks until all sends are done, and returns the first error.
func (t *Exchange) WaitSends(requests []*message.Request) (err error) {
	for _, r := range requests {
		if _, e := t.Done(r); err == nil {
			err = e
		}
	}
	return err
}
