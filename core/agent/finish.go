package agent

import (
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/core/wire"
)

// ProcDone says that a local proc has passed the barrier of Finalize, and that
// Received was told of everything it sent. Packets for it are dropped from now
// on. When all local procs are done, every channel gets its FINI.
func (a *Agent) ProcDone(r wire.WorldRank) error {
	if r < 0 || int(r) >= len(a.procs) || a.procs[r].host != a.self {
		return fmt.Errorf("%w: proc %d is not one of host %d", ErrLink, r, a.self)
	}
	p := a.procs[r].port
	if p.done || p.state == gone {
		return fmt.Errorf("%w: proc %d has ended already", ErrLink, r)
	}
	p.done = true
	a.running--
	a.allDone()
	return nil
}

// fini is the header of a PkFini: pk_type 7, the rest is zero.
var fini = func() (b [wire.HeaderSize]byte) {
	wire.Published.PutHeader(b[:], &wire.Packet{Type: wire.PkFini})
	return b
}()

// allDone sends FINI to all hosts once the last local proc is done. What the
// procs sent before is queued already, so FINI is behind it. Where there is no FINI
// the channel is done when that has been sent.
//
// IMPI ch.3, Finalization: one PK_FINI for each channel, when all procs of the
// host have passed the barrier.
func (a *Agent) allDone() {
	if a.running > 0 {
		return
	}
	for h := range a.hosts {
		if p := &a.ports[h]; p.state != gone {
			p.ended = true
			if a.silent {
				a.channelDone(p)
				continue
			}
			p.out.final = true
			p.out.copyIn(&a.pool, fini[:], false)
			a.touch(p)
		}
	}
	a.checkFinished()
}

// fini notes a peer's FINI.
func (a *Agent) fini(p *port) *ProtocolError {
	if p.isProc() {
		return p.violation("pk_type", wire.PkFini, "only hosts send it")
	}
	if p.done {
		return p.violation("pk_type", wire.PkFini, "it came before")
	}
	p.done = true
	a.emit(Event{Kind: HostFinished, Peer: p.peer, Link: p.link})
	a.channelDone(p)
	return nil
}

// channelDone tells the driver when a channel has served its purpose.
func (a *Agent) channelDone(p *port) {
	if p.isProc() || p.over || !p.done && !a.silent || !p.ended || p.hasOutput() || p.state != open {
		return
	}
	p.over = true
	a.emit(Event{Kind: ChannelDone, Peer: p.peer, Link: p.link})
}

// Closed says that the link is closed, with nil or io.EOF when the peer ended it.
// What was queued for it is thrown away; the memory that Input and Output gave
// must not be used any more. An unknown link is ignored.
func (a *Agent) Closed(l LinkID, cause error) {
	p := a.lookup(l)
	if p == nil {
		return
	}
	cause = p.ending(cause)
	a.links[l] = nil
	p.link, p.state = NoLink, gone
	p.in.abandon(&a.pool)
	a.stats.Discarded += uint64(p.out.clear(&a.pool) + p.urgent.clear(&a.pool))
	if a.silent && !p.isProc() && errors.Is(cause, errNoFini) {
		p.done = true
		a.emit(Event{Kind: HostFinished, Peer: p.peer, Link: NoLink})
	}
	early := !p.done || p.err != nil
	switch {
	case early && p.isProc():
		a.emit(Event{Kind: ProcLost, Peer: p.peer, Link: NoLink, Err: cause})
	case early:
		a.emit(Event{Kind: HostDied, Peer: p.peer, Link: NoLink, Err: cause})
	case !p.isProc():
		a.channels--
		a.checkFinished()
	}
}

// ending is the true reason why a link ended.
func (p *port) ending(cause error) error {
	switch {
	case p.err != nil:
		return p.err
	case cause != nil && !errors.Is(cause, io.EOF):
		return cause
	case p.in.size > 0:
		return fmt.Errorf("%w: %d of %d bytes of a %v packet came", ErrTruncated, p.in.size-p.in.left, p.in.size, p.in.kind)
	case p.in.end > p.in.start:
		return fmt.Errorf("%w: %d of %d bytes of a header came", ErrTruncated, p.in.end-p.in.start, wire.HeaderSize)
	case p.isProc():
		return fmt.Errorf("the link ended before the proc was done: %w", io.EOF)
	}
	return errNoFini
}

// errNoFini is the end of a channel between two packets.
var errNoFini = fmt.Errorf("the channel ended before FINI: %w", io.EOF)

// checkFinished tells when all is over. A host that died never lets it come.
func (a *Agent) checkFinished() {
	if a.running == 0 && a.channels == 0 && !a.finished {
		a.finished = true
		a.emit(Event{Kind: Finished, Link: NoLink})
	}
}
