package mpi

import (
	"errors"
	"slices"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/wireup"
)

// breach is a link that has ended, and why.
type breach struct {
	q     *port
	cause error
}

// broke sees to a link of this job that has ended. Mostly one breaks because a proc
// died, and then the node ends this one within moments, with a message that says which.
// The program need not add its own of the consequences. In Finalize it may also be a
// peer that has passed the barrier sooner; whoever dies there does the same to links.
func (p *process) broke(q *port, cause error) {
	at := phase(p.state.Load())
	inOrder := at >= parted || q.peer == message.NoPeer && at == finalizing
	if p.control == nil || inOrder || errors.Is(cause, message.ErrProtocol) {
		p.lose(q, cause)
		return
	}
	p.breaks = append(p.breaks, breach{q, cause})
	p.machine.AfterFunc(p.grace, func() {
		p.lock()
		defer p.unlock()
		i := slices.IndexFunc(p.breaks, func(b breach) bool { return b.q == q })
		if i >= 0 {
			p.breaks = slices.Delete(p.breaks, i, i+1)
			p.lose(q, cause)
		}
	})
}

// passBarrier is for the moment from which on nobody needs anything of anybody: links
// that have ended need not be thought about any longer.
func (p *process) passBarrier() {
	p.lock()
	defer p.unlock()
	p.state.Store(int32(parted))
	breaks := p.breaks
	p.breaks = nil
	for _, b := range breaks {
		p.lose(b.q, b.cause)
	}
}

// tellLost tells the node that a link to a proc of this job is lost, before the program
// can see it: if this proc ends in a bad way now, that may be only a consequence.
func (p *process) tellLost(q *port, cause error) {
	if p.control == nil || q.peer == message.NoPeer || p.stranger(q.peer) || phase(p.state.Load()) >= parted {
		return
	}
	_ = p.control.Send(wireup.Message{Kind: wireup.KindLost, Peer: rank(q.peer), Reason: cause.Error()}) // the node may be gone
}
