package direct

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
)

// State returns a pair's state, from what the node knows and from what the proc reports of itself
// and of the link (nil if it reports nothing).
func (d *Links) State(x Pair, s *wireup.Stats, l *wireup.LinkStats) links.State {
	if routes.UsesNative(d.Routes, x.Local, x.Peer) {
		return d.nativeState(x, l)
	}
	switch d.PairState(x) {
	case dynamic.Dialling:
		return links.StateOpening
	case dynamic.Yielding:
		return links.StateWaiting
	case dynamic.Refused:
		return links.StateAgents
	case dynamic.Linked:
		if s == nil && d.Procs.OfRank(x.Local).State() == ending.Finished || s != nil && l != nil && !l.Direct {
			return links.StateEnded
		}
		if l != nil && l.Disconnected {
			return links.StateLost
		}
		return links.StateLinked
	case dynamic.Unlinked:
		if l != nil && (l.Routed || l.Messages > 0) {
			return links.StateAgents
		}
	}
	return links.StateUnused
}

// whyAgents says why packets of a pair go through the agents although no direct link was tried.
func (d *Links) whyAgents(x Pair) string {
	switch ours, theirs := d.Routes.Cards.At(x.Local), d.Routes.Cards.At(x.Peer); {
	case ours == nil || theirs == nil:
		return d.Routes.WhyNoCards(x.Peer)
	case !d.Routes.RouteTo(x.Peer).Direct:
		return "the route has direct = false"
	}
	return dial.NoCandidate
}

func (d *Links) describeRoute(peer wire.WorldRank) links.Route {
	r := d.Routes.RouteTo(peer)
	l := links.Route{Prefer: preferred(r), Direct: r.Direct, DataPlane: r.DataPlane, RequireTLS: r.RequireTLS, Closed: r.Closed}
	if r.Compress != nil {
		l.Compress = r.Compress.String()
	}
	if r.Precision != nil {
		l.Precision = r.Precision.String()
	}
	for _, b := range routes.CurrentSite(d.Routes).Routes {
		if b.Site == r.Site {
			l.Site = r.Site // the file has a block for it
		}
	}
	return l
}

// View returns what the node knows of a pair that is in a state.
func (d *Links) View(x Pair, state links.State) links.View {
	r := d.past.of(x)
	v := links.View{
		Local: int(x.Local), Peer: int(x.Peer), State: state,
		LocalHost: int(d.Routes.World.Procs.At(x.Local).Host), PeerHost: int(d.Routes.World.Procs.At(x.Peer).Host),
		Transport: r.transport, Plane: r.plane, PlaneReason: r.planeReason,
		Resumes: d.Resumes(x), Dialled: r.dialled, Since: r.since, Reason: r.reason,
		Candidates: d.withNative(x, d.candidates(x, &r)), Route: d.describeRoute(x.Peer),
	}
	ours, theirs := d.Routes.Cards.At(x.Local), d.Routes.Cards.At(x.Peer)
	if routes.UsesNative(d.Routes, x.Local, x.Peer) {
		v.Transport, v.Native = d.nativeName(), true
	}
	v.SameMachine = ours != nil && theirs != nil && ours.SameNode(theirs)
	if v.Compress = r.compress; v.Compress == "" && v.State != links.StateUnused {
		v.NoCompress = routes.WhyNotCompressed(d.Routes, x.Local, x.Peer, r.transport)
	}
	v.Rounds, v.Exact = d.Routes.Data(x.Local, x.Peer) == datatype.NativeFloat.String(), routes.WhyNotFloats(d.Routes, x.Local, x.Peer)
	if v.State == links.StateAgents && v.Reason == "" {
		v.Reason = d.whyAgents(x)
	}
	return v
}

// TransportOf returns the transport and data plane of a pair's link, empty if it has none. native
// reports whether it is the site's own MPI.
func TransportOf(d *Links, x Pair) (transport, plane string, native bool) {
	if routes.UsesNative(d.Routes, x.Local, x.Peer) {
		return d.nativeName(), "", true
	}
	d.past.mu.Lock()
	defer d.past.mu.Unlock()
	if r := d.past.pairs[x]; r != nil {
		return r.transport, r.plane, false
	}
	return "", "", false
}

// PluginLinkID returns the plugin's ID of the link of a pair, if its bytes pass through the plugin.
func PluginLinkID(d *Links, x Pair) host.LinkID {
	d.past.mu.Lock()
	defer d.past.mu.Unlock()
	if r := d.past.pairs[x]; r != nil {
		return r.id
	}
	return host.LinkID{}
}

// Path returns how the packets of a pair are to go, and warns the operator if the route has direct
// links but there is no candidate.
func (d *Links) Path(x Pair) wireup.Path {
	switch {
	case x.Local == x.Peer:
		return wireup.PathSelf
	case routes.UsesNative(d.Routes, x.Local, x.Peer):
		return wireup.PathNative
	case len(d.Candidates(x)) > 0:
		return wireup.PathDirect
	case d.Routes.Cards.At(x.Local) != nil && d.Routes.Cards.At(x.Peer) != nil && d.Routes.RouteTo(x.Peer).Direct:
		d.FallBacks.ByAgents(x.Local, x.Peer, dial.NoCandidate, "")
	}
	return wireup.PathChannel
}
