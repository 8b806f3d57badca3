package agent

import (
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/core/wire"
)

// ProcDone records that a local proc has passed the barrier of Finalize, and that Received was
// called for everything the proc sent. Packets for it are dropped from now on. When all local procs
// are done, every channel gets its FINI (IMPI ch.3, Finalization). The error wraps ErrLink.
func (a *Agent) ProcDone(r wire.WorldRank) error {
	p := a.local(r)
	if p == nil {
		return fmt.Errorf("%w: proc %d is not one of host %d", ErrLink, r, a.self)
	}
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

// allDone sends FINI to all hosts once the last local proc is done, behind what the procs
// sent before. In the dialect that has no FINI, a channel is done when its queue is empty.
//
// IMPI ch.3, Finalization: one PK_FINI for each channel, when all procs of the host have
// passed the barrier.
func (a *Agent) allDone() {
	if a.running > 0 {
		return
	}
	for h := range a.hosts {
		if a.hosts[h].OnDemand && (a.endpoints[h] == nil || !a.endpoints[h].meant) {
			continue
		}
		if p := a.host(wire.HostRank(h)); p.state != gone {
			a.end(p)
		}
	}
	a.checkFinished()
}

// end ends this host's side of a channel, by a FINI if the dialect has one.
func (a *Agent) end(p *endpoint) {
	p.ended = true
	if a.silent {
		a.channelDone(p)
		return
	}
	p.out.final = true
	p.out.copyIn(&a.pool, fini[:], false)
	a.touch(p)
}

// fini records a peer's FINI (IMPI ch.3, Finalization). A second one is a protocol error.
func (a *Agent) fini(p *endpoint) *ProtocolError {
	if p.isProc() {
		return p.violation("pk_type", wire.PkFini, "only hosts send it")
	}
	if p.done {
		return p.violation("pk_type", wire.PkFini, "it came before")
	}
	p.done = true
	a.emit(Event{Kind: HostFinished, Peer: p.peer, Link: p.link})
	endInquiry(a, p)
	a.channelDone(p)
	return nil
}

func (a *Agent) channelDone(p *endpoint) {
	if p.isProc() || p.over || !p.done && !a.silent || !p.ended || p.hasOutput() || p.state != open {
		return
	}
	p.over = true
	a.emit(Event{Kind: ChannelDone, Peer: p.peer, Link: p.link})
}

// Closed records that the link is closed; cause is nil or io.EOF if the peer ended it. Bytes queued
// for it are discarded, and the memory that Input and Output returned must not be used any more.
// Closed ignores an unknown link.
func (a *Agent) Closed(l LinkID, cause error) {
	p := a.lookup(l)
	if p == nil {
		return
	}
	cause = p.ending(cause)
	a.links[l] = nil
	p.link, p.state = NoLink, gone
	p.in.abandon(&a.pool)
	a.stats.Discarded += uint64(p.out.clear(&a.pool) + p.urgent.clear(&a.pool) + p.inquiry.waits())
	endInquiry(a, p)
	p.inquiry = nil
	if a.silent && !p.isProc() && errors.Is(cause, errNoFini) {
		p.done = true
		a.emit(Event{Kind: HostFinished, Peer: p.peer, Link: NoLink})
	}
	early := !p.done || p.err != nil
	switch {
	case early && p.isProc():
		a.emit(Event{Kind: ProcLost, Peer: p.peer, Link: NoLink, Err: cause})
	case early:
		p.died = true
		a.emit(Event{Kind: HostDied, Peer: p.peer, Link: NoLink, Err: cause})
	case !p.isProc():
		a.channels--
		a.checkFinished()
	}
}

// ending returns the cause that an event reports for the end of p's link.
func (p *endpoint) ending(cause error) error {
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

// errNoFini is the cause if a channel ended between two packets without FINI.
var errNoFini = fmt.Errorf("the channel ended before FINI: %w", io.EOF)

// checkFinished emits Finished when all procs are done and all channels have ended. After a host
// has died it does so only if the job goes on without that.
func (a *Agent) checkFinished() {
	if a.running == 0 && a.channels == 0 && !a.finished {
		a.finished = true
		a.emit(Event{Kind: Finished, Link: NoLink})
	}
}
