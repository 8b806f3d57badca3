package mpi

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/internal/wireup"
)

const (
	// lendShared is how many bytes are lent, at least, where cores are shared.
	lendShared = 128 << 10
	// grace is how long a broken link is kept from the program.
	grace = 2 * time.Second
	// holdBack is how many bytes of Isends are gathered before they are written: a
	// series of them goes up to a half faster over TCP in few long writes;
	// holdBackMemory is as many, headers included, where writing costs so little
	// that the receiver had better begin.
	holdBack       = 256 << 10
	holdBackMemory = 1 << 10
)

// port is a link of this proc.
type port struct {
	drive.Port
	p         *process
	id        message.LinkID
	peer      message.Peer      // message.NoPeer for the agent
	lender    link.Lender       // Link, if it is one
	fastBoxes bool              // it takes fast-box messages
	lent      bool              // some of the last output is lent
	ended     bool              // our side of it is ended: nothing is written any more
	burst     bool              // an Isend was written since the program last waited
	awaited   bool              // what is written is a blocking send's
	held      int               // bytes of Isends that wait for company
	terms     *wireup.Resumable // of a link that resumes
	frames    *resumable.Link   // it, if nobody is to see what passes by

	// Of links to procs of other worlds:
	parting   parting
	word      *message.Request // wordPart
	forgotten bool             // the node knows that there may be another
}

// addPort makes l carry packets: of peer only, or of everybody for NoPeer.
func (p *process) addPort(l link.Link, peer message.Peer) (*port, error) {
	q := &port{peer: peer}
	q.Link = l
	return q, p.add(q)
}

// add makes q, of which the link and the peer are known, carry packets.
func (p *process) add(q *port) error {
	q.p, q.id = p, message.LinkID(len(p.ports))
	n := len(p.vacant)
	if n > 0 {
		q.id = p.vacant[n-1]
	}
	if err := p.links.Add(&q.Port, uint32(q.id), q); err != nil {
		return err
	}
	if n > 0 {
		p.vacant, p.ports[q.id] = p.vacant[:n-1], q
	} else {
		p.ports = append(p.ports, q)
	}
	if q.peer == message.NoPeer {
		p.eng.Attach(q.id)
	} else {
		p.eng.AttachPeer(q.id, q.peer)
		p.links.Warm(&q.Port)
	}
	q.lender, _ = q.Link.(link.Lender)
	if m, ok := q.Link.(link.Memory); ok {
		q.InPlace = m
		p.eng.InPlace(q.id, m)
	}
	if n, ok := q.Link.(link.FastBoxLink); ok && p.takesFastBoxes(q.peer) && n.TakeFastBoxes() {
		q.fastBoxes = true
		p.eng.UseFastBoxes(q.id, n)
		if p.express != nil {
			p.express.join(p, q)
		}
	}
	return nil
}

// takesFastBoxes tells whether fast-box messages may come from a peer: by a link of its own, where
// packets say no less than fast-box messages do, as the draft's would.
func (p *process) takesFastBoxes(peer message.Peer) bool {
	return peer != message.NoPeer && p.job.Dialect != wire.Draft
}

// Flush writes what the engine has for q until it is written or the link is
// full, and tells whether anything was.
func (q *port) Flush() (progress bool) {
	p := q.p
	q.held, q.Full = 0, false
	for q.Due() {
		out := p.eng.Output(q.id)
		if q.InPlace != nil && q.InPlace.Commit() {
			progress = true
			if len(out) == 0 {
				continue
			}
		}
		n, err := p.write(q, out)
		short := n < link.Len(out) // before Sent, which reuses out
		q.Full = short
		if q.Resumable != nil && q.lent {
			q.Full = q.Resumable.Behind()
		}
		if n > 0 {
			p.eng.Sent(q.id, n)
			progress = true
		}
		if err != nil {
			q.Drop(err)
			return true
		}
		if q.Full {
			if p.asleep && !p.links.Rearm(&q.Port) { // so that the driver wakes up once q takes more
				p.rouse()
			}
			break
		}
		if short && n == 0 {
			break
		}
	}
	return progress
}

// Due tells whether Flush has something to do: of a link that resumes, to which
// everything was lent, there may only be the rest to wait for.
func (q *port) Due() bool {
	if q.ended || !q.p.eng.HasOutput(q.id) {
		return false
	}
	r := q.Resumable
	return r == nil || !q.lent || r.Owes() || r.Behind() || q.p.eng.Fresh(q.id)
}

// write gives output to the link. The engine leaves it where it is until it is
// sent, so that it may be lent. Who lends has to wait until the receiver runs, which
// is dearer than a copy if the receiver waits for a core.
func (p *process) write(q *port, out [][]byte) (int, error) {
	n := link.Len(out)
	if q.Resumable != nil {
		return p.writeResumable(q, out, n)
	}
	if q.lender == nil || !q.lent && n < lendShared && p.spin.Shared() {
		return q.Link.Send(out)
	}
	k, err := q.lender.Lend(out)
	q.lent = k < n
	return k, err
}

// writeResumable is write for a link that resumes: what the engine keeps until it is
// acknowledged need not be copied.
func (p *process) writeResumable(q *port, out [][]byte, size int) (n int, err error) {
	switch {
	case !q.lent && size < lendResumable, !q.lent && q.awaited && size < lendBlocking, q.lender == nil, p.eng.Packing(q.id):
		if q.frames != nil {
			n, err = q.frames.Send(out)
		} else {
			n, err = q.Link.Send(out)
		}
	default:
		n, err = q.lender.Lend(out)
	}
	if q.lent || n < size {
		p.setLent(q, q.Resumable.Lending())
	}
	return n, err
}

// flushAll writes what is there for any port. A port whose link was full is
// tried again too: that is the only way to learn that it is not.
func (p *process) flushAll() (progress bool) {
	p.deferred = false
	for _, q := range p.ports {
		if q == nil {
			continue
		}
		q.burst = false
		if q.Due() && q.Flush() {
			progress = true
		}
	}
	return progress
}

// Receive reads q and tells whether anything came.
func (q *port) Receive() (progress bool) {
	p := q.p
	if q.InPlace != nil {
		var all bool
		if progress, all = p.takeInPlace(q); all {
			return progress
		}
	}
	if q.frames != nil && !q.lent {
		var all bool
		if progress, all = p.takeFrames(q); all {
			return progress
		}
	}
	for range drive.MaxReads {
		in := p.eng.Input(q.id)
		n, err := q.Link.Recv(in)
		if n > 0 {
			progress = true
			whole := n == link.Len(in) // before Received, which reuses in
			if perr := p.eng.Received(q.id, n); perr != nil {
				q.Drop(perr)
				return true
			}
			if whole && err == nil {
				continue
			}
		}
		if err != nil {
			q.Drop(err)
			return true
		}
		return progress
	}
	return progress
}

// takeFrames takes the packets that lie whole in what has come for a link that resumes, or the
// beginning of a long one, and tells whether there were any, and whether that was all.
func (p *process) takeFrames(q *port) (progress, all bool) {
	for range drive.MaxReads {
		data, whole, more := q.frames.Peek()
		if len(data) == 0 {
			return progress, !more
		}
		var n int
		var err error
		if whole {
			n, err = p.eng.Arrived(q.id, data)
		} else {
			n, err = p.eng.Begun(q.id, data)
		}
		progress = progress || n > 0
		stirred := q.frames.Discard(n)
		switch {
		case err != nil:
			q.Drop(err)
			return true, true
		case !whole, n < len(data):
			return progress, false
		case !stirred:
			return progress, true
		}
	}
	return progress, false
}

// takeInPlace takes fast-box messages and the packets that lie whole in the link's memory, and
// tells whether there were any, and whether that was all that had come.
func (p *process) takeInPlace(q *port) (progress, all bool) {
	if q.fastBoxes {
		var err error
		if progress, err = p.eng.TakeFastBoxes(q.id); err != nil {
			q.Drop(err)
			return true, true
		}
	}
	b := q.InPlace.Peek()
	if len(b) == 0 {
		return progress, progress
	}
	n, err := p.eng.Arrived(q.id, b)
	q.InPlace.Discard(n)
	if err != nil {
		q.Drop(err)
		return true, true
	}
	return progress || n > 0, n == len(b)
}

// Drop closes a port that is of no more use. The engine fails what needs it.
func (q *port) Drop(cause error) {
	p := q.p
	if p.ports[q.id] != q {
		return
	}
	p.ports[q.id] = nil
	p.links.Remove(&q.Port)
	p.setLent(q, false)
	if p.express != nil {
		p.express.leave(q)
	}
	_ = q.Link.Close()
	if errors.Is(cause, io.EOF) {
		cause = fmt.Errorf("%w: %s ended it", ErrPeerGone, p.who(q))
	}
	cause = fmt.Errorf("link to %s: %w", p.who(q), cause)
	if p.stranger(q.peer) {
		p.loseStranger(q, cause)
		return
	}
	p.broke(q, cause)
}

// lose makes what needs q fail. Without its agent a proc cannot go on: the agent
// stays until the node knows that the proc has finished, so that even in
// Finalize its end is no good news.
func (p *process) lose(q *port, cause error) {
	p.tellLost(q, cause)
	p.eng.Detach(q.id, cause)
	p.rouse() // also those who probe
	if q.peer == message.NoPeer && phase(p.state.Load()) < finalized {
		p.lost = cause
		p.fail(cause)
	}
}

// route has packets to peer leave by l. They cannot by an agent that is lost.
func (p *process) route(peer message.Peer, l message.LinkID) {
	if l == agentLink && p.lost != nil {
		p.eng.PeerDown(peer, p.lost)
		return
	}
	p.eng.SetRoute(peer, l)
}

func (p *process) who(q *port) string {
	if q.peer == message.NoPeer {
		return "the agent"
	}
	if g := p.guests[q.peer]; g != nil {
		return "who was met at a port"
	}
	if p.stranger(q.peer) {
		return p.member(comm.Proc(q.peer)).String()
	}
	return fmt.Sprintf("rank %d", q.peer)
}

// findRoutes decides how to reach the peers that have their first packet.
func (p *process) findRoutes() {
	for {
		peer, ok := p.eng.Unrouted()
		if !ok {
			return
		}
		if p.stranger(peer) {
			p.openStranger(peer)
		} else if !p.openDirect(peer) {
			p.route(peer, agentLink)
		}
	}
}

// rank is a peer of the engine as a world rank; the first peers are those.
func rank(peer message.Peer) wire.WorldRank { return wire.WorldRank(peer) }
