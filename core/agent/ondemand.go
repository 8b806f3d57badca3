package agent

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// onDemand reports whether p is a host whose channel is made on demand.
func (a *Agent) onDemand(p *endpoint) bool {
	return !p.isProc() && a.hosts[p.peer.Host].OnDemand && p.peer.Host != a.self
}

// mean counts a channel that is made on demand among those that have to end. It returns false if
// that is too late.
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

// owes reports whether packets wait for host p that its procs may need: all but FINI. Also when all procs
// of this host are done the last ones that they sent may be what others wait for in Finalize's barrier.
func (a *Agent) owes(p *endpoint) bool {
	end := 0
	if p.ended && !a.silent {
		end = len(fini)
	}
	return p.out.bytes+p.urgent.bytes > end
}

// ExpectHost says that host h has made the channel, which AttachHost or Unexpect follows. It returns
// false if there can be none any more: this host has finished, and the other one needs nothing of it.
func (a *Agent) ExpectHost(h wire.HostRank) bool {
	if h < 0 || int(h) >= len(a.hosts) || h == a.self || !a.hosts[h].OnDemand {
		return false
	}
	return a.mean(a.host(h))
}

// Unexpect says that a channel which ExpectHost was told of was lost before anything was sent on it.
// Packets that have waited for it want another one.
func (a *Agent) Unexpect(h wire.HostRank) {
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

// NotYet says that host h could not be reached at the first attempt, or at another one. It returns
// false if nobody needs the channel any more: it is there, or all procs of this host are done and nothing
// of theirs waits for it.
func (a *Agent) NotYet(h wire.HostRank) bool {
	p := a.host(h)
	if p.meant && p.state == waiting && a.running == 0 && !a.owes(p) {
		a.NoChannel(h, nil)
	}
	return p.meant && p.state == waiting
}

// NoChannel says that there will be no channel to host h, which was wanted. cause is nil if the host
// has said that it is leaving: all procs of the job have passed the barrier of Finalize then, and
// nobody misses what has waited. Nor is it a failure if all procs of this host are done and nothing of
// theirs waits. Otherwise the host counts as dead, by an error that wraps ErrUnreached.
func (a *Agent) NoChannel(h wire.HostRank, cause error) {
	p := a.host(h)
	if !p.meant || p.state != waiting {
		return
	}
	needed := a.running > 0 || a.owes(p)
	p.state = gone
	a.stats.Discarded += uint64(p.out.clear(&a.pool) + p.urgent.clear(&a.pool))
	if cause != nil && needed {
		a.emit(Event{Kind: HostDied, Peer: p.peer, Link: NoLink, Err: fmt.Errorf("%w: %w", ErrUnreached, cause)})
		return
	}
	a.channels--
	a.checkFinished()
}
