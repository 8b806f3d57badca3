package mpi

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/lasting"
)

const (
	// maxReads bounds how often one port is read before others have their turn.
	maxReads = 4
	// lendShared is how many bytes are lent, at least, where cores are shared.
	lendShared = 128 << 10
	// busy is how many receives in a row polling must bring before a port leaves
	// the poll set.
	busy = 64
	// hotPorts is how many ports are polled at each step, which is nothing to those that
	// are memory; hotCalls is how many of them may cost a system call.
	hotPorts = 4
	hotCalls = 2
	// stale is how many receives in a row must bring nothing before a port that
	// costs a system call leaves the hot ports to one that is memory.
	stale = 256
	// grace is how long a broken link is kept from the program.
	grace = 2 * time.Second
	// holdBack is how many bytes of Isends are gathered before they are written: a
	// series of them goes up to a half faster over TCP in few long writes;
	// holdBackMemory is as many, headers included, where writing costs so little
	// that the receiver had better begin.
	holdBack       = 256 << 10
	holdBackMemory = 1 << 10
)

// port is a link and what the driver knows of it.
type port struct {
	id        message.LinkID
	peer      message.Peer // message.NoPeer for the agent
	link      link.Link
	lender    link.Lender   // link, if it is one
	inplace   link.Memory   // link, if packets can be written and read in its own memory
	fastBoxes bool          // it takes fast-box messages
	interest  link.Interest // what the poll set waits for; 0: not in the set
	streak    int           // receives that polling brought since the last sleep
	misses    int           // receives in a row that brought nothing
	mute      bool          // only reading tells whether something came
	memory    bool          // reading it costs next to nothing
	lent      bool          // some of the last output is lent
	full      bool          // it did not take all of the last output
	ended     bool          // our side of it is ended: nothing is written any more
	burst     bool          // an Isend was written since the program last waited
	awaited   bool          // what is written is a blocking send's
	held      int           // bytes of Isends that wait for company
	keeper    *keeper       // of a lasting link
	frames    *lasting.Link // it, if nobody is to see what passes by

	// Of links to procs of other worlds:
	parting   parting
	word      *message.Request // wordPart
	forgotten bool             // the node knows that there may be another
}

// addPort makes l carry packets: of peer only, or of everybody for NoPeer.
func (p *process) addPort(l link.Link, peer message.Peer) (*port, error) {
	q := &port{id: message.LinkID(len(p.ports)), peer: peer, link: l}
	if n := len(p.vacant); n > 0 {
		q.id = p.vacant[n-1]
	}
	if h := l.Handle(); h != link.NoHandle {
		if err := p.set.Add(h, uint32(q.id), link.Readable); err != nil {
			return nil, err
		}
		q.interest = link.Readable
	}
	handle := l.Handle()
	q.memory = handle != link.NoHandle && l.Limits().Memory
	if handle == link.NoHandle || q.memory {
		q.mute = true
		p.mute++
	}
	if n := len(p.vacant); n > 0 {
		p.vacant, p.ports[q.id] = p.vacant[:n-1], q
	} else {
		p.ports = append(p.ports, q)
	}
	if peer == message.NoPeer {
		p.eng.Attach(q.id)
	} else {
		p.eng.AttachPeer(q.id, peer)
		p.warm(q)
	}
	q.lender, _ = l.(link.Lender)
	if m, ok := l.(link.Memory); ok {
		q.inplace = m
		p.eng.InPlace(q.id, m)
	}
	if n, ok := l.(link.FastBoxLink); ok && p.takesFastBoxes(peer) && n.TakeFastBoxes() {
		q.fastBoxes = true
		p.eng.UseFastBoxes(q.id, n)
		if p.express != nil {
			p.express.join(p, q)
		}
	}
	return q, nil
}

// takesFastBoxes tells whether fast-box messages may come from a peer: by a link of its own, where packets say no
// less than fast-box messages do, as the draft's would.
func (p *process) takesFastBoxes(peer message.Peer) bool {
	return peer != message.NoPeer && p.job.Dialect != wire.Draft
}

// warm makes q one of the ports that are polled without asking the set first.
// The one that it displaces must be in the set.
func (p *process) warm(q *port) {
	if p.hot[0] == q {
		return
	}
	at := p.seat(q)
	old := p.hot[at]
	copy(p.hot[1:at+1], p.hot[:at])
	p.hot[0] = q
	if old != nil && old != q && old.interest == 0 {
		p.arm(old)
	}
}

// seat is the place among the hot ports that q is to take: its own, a free one, or
// that of the one whose last message is longest ago. Of ports that cost a system
// call each time at most hotCalls are hot.
func (p *process) seat(q *port) int {
	calls, at := 0, len(p.hot)-1
	for i, h := range &p.hot {
		switch {
		case h == q:
			return i
		case h == nil:
			return min(at, i)
		case !h.memory && !q.memory:
			if calls++; calls == hotCalls {
				at = i
			}
		}
	}
	return at
}

// cool makes q none of the hot ports.
func (p *process) cool(q *port) {
	if i := slices.Index(p.hot[:], q); i >= 0 {
		copy(p.hot[i:], p.hot[i+1:])
		p.hot[len(p.hot)-1] = nil
	}
}

// hit says that polling q brought something. A port that is busy leaves the poll
// set until the next sleep: the set costs each arriving packet a detour, even
// when nobody asks it.
func (p *process) hit(q *port) {
	q.misses = 0
	if q.streak++; q.streak == busy && q.interest != 0 {
		if p.set.Remove(q.link.Handle()) == nil {
			q.interest = 0
		}
	}
}

// miss says that a system call was spent on q for nothing. If that goes on while
// another hot port is memory, which such calls delay, q is left to the set.
func (p *process) miss(q *port) {
	if q.misses++; q.misses < stale {
		return
	}
	if !slices.ContainsFunc(p.hot[:], func(h *port) bool { return h != nil && h.memory }) {
		return
	}
	p.cool(q)
	q.misses = 0
	if q.interest == 0 {
		p.arm(q)
	}
}

// flush writes what the engine has for q until it is written or the link is
// full, and tells whether anything was.
func (p *process) flush(q *port) (progress bool) {
	q.held, q.full = 0, false
	for !q.ended && p.due(q) {
		out := p.eng.Output(q.id)
		if q.inplace != nil && q.inplace.Commit() {
			progress = true
			if len(out) == 0 {
				continue
			}
		}
		n, err := p.write(q, out)
		short := n < link.Len(out) // before Sent, which reuses out
		q.full = short
		if q.keeper != nil && q.lent {
			q.full = q.keeper.Behind()
		}
		if n > 0 {
			p.eng.Sent(q.id, n)
			progress = true
		}
		if err != nil {
			p.drop(q, err)
			return true
		}
		if q.full {
			if p.asleep && !p.arm(q) { // so that the driver wakes up once q takes more
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

// due tells whether flush has something to do: of a lasting link to which
// everything was lent there may only be the rest to wait for.
func (p *process) due(q *port) bool {
	if !p.eng.HasOutput(q.id) {
		return false
	}
	k := q.keeper
	return k == nil || !q.lent || k.Owes() || k.Behind() || p.eng.Fresh(q.id)
}

// write gives output to the link. The engine leaves it where it is until it is
// sent, so that it may be lent. Who lends has to wait until the receiver runs, which
// is dearer than a copy if the receiver waits for a core.
func (p *process) write(q *port, out [][]byte) (int, error) {
	n := link.Len(out)
	if q.keeper != nil {
		return p.writeLasting(q, out, n)
	}
	if q.lender == nil || !q.lent && n < lendShared && p.spin.Shared() {
		return q.link.Send(out)
	}
	k, err := q.lender.Lend(out)
	q.lent = k < n
	return k, err
}

// writeLasting is write for a lasting link: what the engine keeps until it is
// acknowledged need not be copied.
func (p *process) writeLasting(q *port, out [][]byte, size int) (n int, err error) {
	switch {
	case !q.lent && size < lendLasting, !q.lent && q.awaited && size < lendBlocking, q.lender == nil, p.eng.Packing(q.id):
		if q.frames != nil {
			n, err = q.frames.Send(out)
		} else {
			n, err = q.link.Send(out)
		}
	default:
		n, err = q.lender.Lend(out)
	}
	if q.lent || n < size {
		p.setLent(q, q.keeper.Lending())
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
		if p.due(q) && p.flush(q) {
			progress = true
		}
	}
	return progress
}

// receive reads q and tells whether anything came.
func (p *process) receive(q *port) (progress bool) {
	if q.inplace != nil {
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
	for range maxReads {
		in := p.eng.Input(q.id)
		n, err := q.link.Recv(in)
		if n > 0 {
			progress = true
			whole := n == link.Len(in) // before Received, which reuses in
			if perr := p.eng.Received(q.id, n); perr != nil {
				p.drop(q, perr)
				return true
			}
			if whole && err == nil {
				continue
			}
		}
		if err != nil {
			p.drop(q, err)
			return true
		}
		return progress
	}
	return progress
}

// takeFrames takes the packets that lie whole in what has come for a lasting link, or the
// beginning of a long one, and tells whether there were any, and whether that was all.
func (p *process) takeFrames(q *port) (progress, all bool) {
	for range maxReads {
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
			p.drop(q, err)
			return true, true
		case !whole, n < len(data):
			return progress, false
		case !stirred:
			return progress, true
		}
	}
	return progress, false
}

// takeInPlace takes fast-box messages and the packets that lie whole in the link's memory, and tells
// whether there were any, and whether that was all that had come.
func (p *process) takeInPlace(q *port) (progress, all bool) {
	if q.fastBoxes {
		var err error
		if progress, err = p.eng.TakeFastBoxes(q.id); err != nil {
			p.drop(q, err)
			return true, true
		}
	}
	b := q.inplace.Peek()
	if len(b) == 0 {
		return progress, progress
	}
	n, err := p.eng.Arrived(q.id, b)
	q.inplace.Discard(n)
	if err != nil {
		p.drop(q, err)
		return true, true
	}
	return progress || n > 0, n == len(b)
}

// drop closes a port that is of no more use. The engine fails what needs it.
func (p *process) drop(q *port, cause error) {
	if p.ports[q.id] == nil {
		return
	}
	p.ports[q.id] = nil
	p.cool(q)
	if q.interest != 0 {
		_ = p.set.Remove(q.link.Handle()) // a descriptor that is closed leaves the set by itself
		q.interest = 0
	}
	if q.mute {
		p.mute--
	}
	if q.keeper != nil {
		p.setLent(q, false)
	}
	if p.express != nil {
		p.express.leave(q)
	}
	_ = q.link.Close()
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
