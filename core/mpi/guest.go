package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// guest is the proc at the other end of a temporary link, before the two know who
// they are: the root of the other side while worlds meet. For the engine it is a
// world of one proc, named after the port. The process's lock guards it.
type guest struct {
	p    *process
	q    *port
	talk talk
	lost bool // there is no link any more
	left bool // nor anybody who needs it
}

// What both ends of a temporary link know without having agreed on it.
const (
	guestData                     = 8 << 10
	guestAckMark                  = 4
	guestHiWater                  = 16
	guestContext   wire.ContextID = 1<<64 - 16 // no communicator has it
	introduction1                 = 1          // version of what follows
	introductionSz                = 8
	maxSwap                       = 2 * dynamic.MaxDescription
)

// invite makes a guest of who is at the other end of a link by the port of that
// name. calling tells that this proc has called.
func (p *process) invite(l link.Link, name dynamic.World, calling bool) (*guest, error) {
	opener, caller := wire.Proc{Host: wire.HostID(name)}, wire.Proc{Host: wire.HostID(name)}
	caller.Host[0] ^= 0x80
	self, other := opener, caller
	if calling {
		self, other = caller, opener
	}
	first, err := p.eng.AddWorld(message.World{
		Host: other.Host, Size: 1, Self: self, MaxData: guestData, AckMark: guestAckMark, HiWater: guestHiWater,
	})
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	g := &guest{p: p}
	if g.q, err = p.addPort(p.traced(l, "met at a port", message.NoPeer), first); err != nil {
		p.eng.ForgetWorld(first)
		_ = l.Close()
		return nil, err
	}
	p.eng.SetRoute(first, g.q.id)
	if p.guests == nil {
		p.guests = make(map[message.Peer]temporary)
	}
	p.guests[first] = g
	p.callers++
	mine := wire.CommRank(p.callers&(1<<26-1)) + 1
	g.talk = talk{p: p, group: comm.NewGroup(comm.Proc(first), 1), self: message.Envelope{Context: guestContext}, base: mine}
	return g, nil
}

// introduce tells the guest by which rank to call us, and hears the same from it.
// All guests' first messages look alike, so that who waits for one takes those of
// others as well.
func (g *guest) introduce(late *deadline) error {
	p := g.p
	b := binary.BigEndian.AppendUint32(nil, introduction1)
	sent := g.talk.send(0, binary.BigEndian.AppendUint32(b, uint32(g.talk.base)))
	var theirs *introduced
	for theirs == nil && !g.lost && !late.over && p.failure == nil {
		p.takeIntroductions()
		if theirs = p.introduced[g.q.peer]; theirs == nil {
			p.turn()
		}
	}
	if theirs == nil && late.over {
		p.eng.Cancel(sent)
		p.eng.Release(sent)
		return fmt.Errorf("%w: nobody has said anything there for %v", ErrCall, late.limit)
	}
	if theirs == nil {
		_, err := g.talk.done(sent)
		if err == nil {
			err = fmt.Errorf("%w before it has said anything", ErrPeerGone)
		}
		return err
	}
	delete(p.introduced, g.q.peer)
	if _, err := g.talk.done(sent); err != nil {
		return err
	}
	n, err := g.talk.done(theirs.r)
	if err != nil {
		return err
	}
	if v := binary.BigEndian.Uint32(theirs.b[:]); n != introductionSz || v != introduction1 {
		return fmt.Errorf("%w: the other side speaks version %d in %d bytes, want %d", comm.ErrMessage, v, n, introduction1)
	}
	g.talk.self.Rank = wire.CommRank(binary.BigEndian.Uint32(theirs.b[4:]) & (1<<27 - 1))
	return nil
}

// takeIntroductions takes the first messages of guests.
func (p *process) takeIntroductions() {
	for {
		m, status, ok := p.eng.Take(message.Envelope{Context: guestContext, Rank: 0}, message.NoPeer)
		if !ok {
			return
		}
		x := &introduced{}
		x.r = p.eng.RecvMessage(m, x.b[:])
		if p.introduced == nil {
			p.introduced = make(map[message.Peer]*introduced)
		}
		p.introduced[status.Peer] = x
		p.rouse()
	}
}

// swap tells the guest body, or why there is none, and hears the same from it. The
// tag is the number of the step, as a trace shows.
func (g *guest) swap(step step, body []byte, bad error) ([]byte, error) {
	if g.lost {
		return nil, step.fault(errorsFirst(bad, ErrPeerGone))
	}
	g.talk.self.Tag = wire.Tag(step)
	return g.talk.swap(0, step, body, bad)
}

// swap tells a rank body, or why there is none, and hears the same from it.
func (t *talk) swap(rank int, step step, body []byte, bad error) ([]byte, error) {
	open := t.post(rank, status(bad, body))
	text, err := t.read(rank, maxSwap)
	if e := t.sent(open); err == nil {
		err = e
	}
	if bad != nil {
		return nil, bad
	}
	if err == nil {
		text, err = outcome(text)
	}
	return text, step.fault(err)
}

// status is a letter with a body, or why there is none.
func status(bad error, body []byte) []byte {
	l := binary.BigEndian.AppendUint32(letter(), faultCode(bad))
	if bad != nil {
		return l
	}
	return append(l, body...)
}

// outcome is what a status says.
func outcome(text []byte) ([]byte, error) {
	if len(text) < 4 {
		return nil, fmt.Errorf("%w: %d bytes without a status", comm.ErrMessage, len(text))
	}
	if code := binary.BigEndian.Uint32(text); code != 0 {
		return nil, elsewhere(code)
	}
	return text[4:], nil
}

func errorsFirst(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// leave ends our side of the link once all is written. When the other side has done
// so too, nothing is left of the guest.
func (g *guest) leave() {
	g.left = true
	if g.lost {
		g.forget()
	} else {
		g.p.dispatch(departure{g})
	}
}

// departure ends the link to a guest.
type departure struct{ *guest }

// carryOn is of backgroundOp.
func (d departure) carryOn() bool {
	if !d.lost && d.p.eng.HasOutput(d.q.id) {
		return false // a send may be done, and its packet still wait for the link
	}
	if !d.lost {
		d.p.endPort(d.q)
	}
	return true
}

// gone says that the link is closed.
func (g *guest) gone() {
	g.lost = true
	if g.left {
		g.forget()
	}
}

func (g *guest) forget() {
	delete(g.p.guests, g.q.peer)
	delete(g.p.introduced, g.q.peer)
	g.p.eng.ForgetWorld(g.q.peer)
}
