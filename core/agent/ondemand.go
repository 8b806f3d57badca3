package agent

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

func (a *Agent) onDemand(p *endpoint) bool {
	return !p.isProc() && a.hosts[p.peer.Host].OnDemand && p.peer.Host != a.self
}

// mean counts a channel that is made on demand among those whose end this host waits for. It
// returns false if it is too late to make one.
func (a *Agent) mean(p *endpoint) bool {
	switch {
	case a.finished || p.state == gone:
		return false
	case p.meant:
		return true
	case p.state != waiting:
		return false
	}
	p.meant = true
	a.channels++
	return true
}

// owes reports whether packets other than FINI wait for host p. Its procs may need them even when
// all procs of this host are done, for the barrier of Finalize (IMPI ch.3, Finalization).
func (a *Agent) owes(p *endpoint) bool {
	end := 0
	if p.ended && !a.silent {
		end = len(fini)
	}
	return p.out.bytes+p.urgent.bytes > end
}

// ExpectHost records that host h has made the channel; AttachHost or UnexpectHost follows. It
// returns false if the channel is not wanted any more: this host has finished, and no packet to h
// is left.
func (a *Agent) ExpectHost(h wire.HostRank) bool {
	if h < 0 || int(h) >= len(a.hosts) || h == a.self || !a.hosts[h].OnDemand {
		return false
	}
	return a.mean(a.host(h))
}

// UnexpectHost records that a channel announced by ExpectHost was lost before anything was sent on
// it. Packets that wait for it cause another HostWanted.
func (a *Agent) UnexpectHost(h wire.HostRank) {
	p := a.host(h)
	switch {
	case !p.meant || p.state != waiting:
	case a.owes(p):
		a.emit(Event{Kind: HostWanted, Peer: p.peer, Link: NoLink})
	case a.running > 0:
		p.meant = false
		a.channels--
	default:
		a.NoChannel(h, nil)
	}
}

// ChannelDialFailed records that no candidate of host h could be dialled. It returns false if the
// channel is not needed any more: it exists, or all procs of this host are done and no packet of
// theirs waits for it.
func (a *Agent) ChannelDialFailed(h wire.HostRank) bool {
	p := a.host(h)
	if p.meant && p.state == waiting && a.running == 0 && !a.owes(p) {
		a.NoChannel(h, nil)
	}
	return p.meant && p.state == waiting
}

// NoChannel records that there will be no channel to host h, which was wanted. cause is nil if the
// host has reported that it is leaving: then all procs of the job have passed the barrier of
// Finalize, and the packets that waited are not needed. It is no failure either if all procs of
// this host are done and no packet of theirs waits. Otherwise the host counts as dead, by an error
// that wraps ErrUnreached.
func (a *Agent) NoChannel(h wire.HostRank, cause error) {
	p := a.host(h)
	if !p.meant || p.state != waiting {
		return
	}
	needed := a.running > 0 || a.owes(p)
	p.state = gone
	a.stats.Discarded += uint64(p.out.clear(&a.pool) + p.urgent.clear(&a.pool))
	if cause != nil && needed {
		p.died = true
		a.emit(Event{Kind: HostDied, Peer: p.peer, Link: NoLink, Err: fmt.Errorf("%w: %w", ErrUnreached, cause)})
		return
	}
	a.channels--
	a.checkFinished()
}
