package agent

import (
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// SendLost sends to all hosts that accept PkLost which procs are lost, after the packets that were
// queued for them here: so everything that a lost proc has sent arrives first. Channels that are
// made on demand are made for this.
func SendLost(a *Agent, l wire.Lost) {
	l.Text = l.Text[:min(len(l.Text), wire.MaxFail, a.pool.size-wire.HeaderSize-wire.MaxLost+wire.MaxFail)] // must fit into a chunk
	data := wire.AppendLost(nil, l)
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(data))
	wire.Published.PutHeader(b, &wire.Packet{Type: wire.PkLost, Len: uint32(len(data))})
	b = append(b, data...)
	for h := range a.hosts {
		if !a.hosts[h].Survives || wire.HostRank(h) == a.self {
			continue
		}
		p := a.host(wire.HostRank(h))
		switch {
		case p.state == gone || p.over || p.err != nil:
			continue
		case p.ended: // no packet may come after our FINI
			p.urgent.copyIn(&a.pool, b, false)
		default:
			p.out.copyIn(&a.pool, b, false)
		}
		a.touch(p)
	}
}

// takeLost takes what a host has said by PkLost, a type that IMPI does not have (IMPI ch.3, Packet
// Protocol).
func takeLost(a *Agent, p *endpoint) *ProtocolError {
	l, ok := wire.ParseLost(p.inquiry.special[wire.HeaderSize:], a.procs.procs.Len())
	if !ok {
		return p.violation("pk_len", len(p.inquiry.special)-wire.HeaderSize, "it does not say which procs of this job are lost")
	}
	l.Text = startup.Printable([]byte(l.Text))
	a.emit(Event{Kind: RanksLost, Peer: p.peer, Link: NoLink, Lost: l})
	return nil
}

// ContinueWithout records that the job continues without host h: its channel counts as ended once
// HostDied was emitted, and no channel to it is made any more.
func ContinueWithout(a *Agent, h wire.HostRank, why error) {
	p := a.host(h)
	if p.state == waiting && a.onDemand(p) && !p.meant {
		p.state = gone
		return
	}
	a.NoChannel(h, why)
	if !p.died {
		return
	}
	p.died = false
	a.channels--
	a.checkFinished()
}
