package routes

import (
	"net/netip"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// RouteTo returns the site's route to the site of a rank.
func (rt *Table) RouteTo(rank wire.WorldRank) config.Route {
	return CurrentSite(rt).RouteTo(rt.SiteName(int(rt.World.Procs.At(rank).Client)))
}

// Candidates lists how a pair could be linked from an address, best first: the transports that the
// route prefers and that both cards offer.
func (rt *Table) Candidates(local, peer wire.WorldRank, from string) []Candidate {
	if rt.Cards.At(local) == nil || rt.Cards.At(peer) == nil {
		return nil
	}
	return rt.candidatesTo(rt.SharedRoute(peer), rt.Cards.At(local), rt.Cards.At(peer), from)
}

// UsesNative reports whether the site's own MPI carries the messages of a pair.
func UsesNative(rt *Table, local, peer wire.WorldRank) bool {
	if rt.Native == "" || rt.World.Procs.At(peer).Client != rt.World.Self {
		return false
	}
	r, s := rt.RouteTo(peer), rt.SharedRoute(peer)
	return r.Native && s.Native(rt.World.Clients[rt.World.Self].Rank, r.NativeAt, running(rt), rt.Cards.At(local), rt.Cards.At(peer))
}

// MayUseNative reports whether the site's own MPI may carry messages between its procs, where
// nothing better is possible. All nodes of the site get the same result.
func MayUseNative(rt *Table) bool {
	s := rt.SharedRoute(FirstProc(rt))
	return rt.Native != "" && rt.RouteTo(FirstProc(rt)).Native && s.Native(rt.World.Clients[rt.World.Self].Rank, 0, nil, nil, nil)
}

// WorldCandidates lists how a proc of ours can reach one of another world, by the route to any
// site.
func (rt *Table) WorldCandidates(local wire.WorldRank, theirs *dynamic.BusinessCard, from string) []Candidate {
	return rt.candidatesTo(rt.RouteToWorlds(theirs), rt.Cards.At(local), theirs, from)
}

// WorldResumeCandidates lists how a link to a proc of another world may be resumed, as
// ResumeCandidates does.
func WorldResumeCandidates(rt *Table, local wire.WorldRank, theirs *dynamic.BusinessCard, from string) []Candidate {
	return drainedLast(rt, allCandidates(rt, rt.RouteToWorlds(theirs), rt.Cards.At(local), theirs, from))
}

// SpareCandidates lists how a spare site, whose card is ours, can reach a host of the job, by its
// route to any site. If there is a way by drained transports alone, it returns that if anyhow is set,
// and else reports it.
func SpareCandidates(rt *Table, ours, theirs *dynamic.BusinessCard, from string, anyhow bool) (now []Candidate, drained bool) {
	r := rt.RouteToWorlds(theirs)
	if now = rt.candidatesTo(r, ours, theirs, from); len(now) > 0 {
		return now, false
	}
	all := allCandidates(rt, r, ours, theirs, from)
	if anyhow {
		return all, false
	}
	return nil, len(all) > 0
}

// candidatesTo lists the candidates for new links: drained transports are left out.
func (rt *Table) candidatesTo(r route.Route, ours, theirs *dynamic.BusinessCard, from string) []Candidate {
	return slices.DeleteFunc(allCandidates(rt, r, ours, theirs, from), func(w Candidate) bool { return rt.Drained.Has(w.Transport.Name) })
}

// ResumeCandidates lists how a link that a pair has may be resumed: by the candidates for new
// links, or else by the drained ones.
func ResumeCandidates(rt *Table, local, peer wire.WorldRank, from string) []Candidate {
	ours, theirs := rt.Cards.At(local), rt.Cards.At(peer)
	if ours == nil || theirs == nil {
		return nil
	}
	return drainedLast(rt, allCandidates(rt, rt.SharedRoute(peer), ours, theirs, from))
}

func drainedLast(rt *Table, all []Candidate) []Candidate {
	slices.SortStableFunc(all, func(a, b Candidate) int { return later(rt, a) - later(rt, b) })
	return all
}

// DrainedCandidates returns the names of the transports by which a pair could be linked if they
// were not drained.
func DrainedCandidates(rt *Table, local, peer wire.WorldRank) (names []string) {
	for _, w := range ResumeCandidates(rt, local, peer, "") {
		if rt.Drained.Has(w.Transport.Name) && !slices.Contains(names, w.Transport.Name) {
			names = append(names, w.Transport.Name)
		}
	}
	return names
}

func later(rt *Table, w Candidate) int {
	if rt.Drained.Has(w.Transport.Name) {
		return 1
	}
	return 0
}

func allCandidates(rt *Table, r route.Route, ours, theirs *dynamic.BusinessCard, from string) (candidates []Candidate) {
	for _, o := range r.Addresses(running(rt), ours, theirs) {
		candidates = append(candidates, Candidate{Transport: rt.Transport(o.Transport), Address: o.Address, From: from})
	}
	return candidates
}

// Allows reports whether a proc of ours may have a link that rank made by t.
func (rt *Table) Allows(rank wire.WorldRank, t *Transport) bool {
	return AllowsResume(rt, rank, t) && !rt.Drained.Has(t.Name)
}

// AllowsResume is Allows for a further connection of a link.
func AllowsResume(rt *Table, rank wire.WorldRank, t *Transport) bool {
	r := rt.SharedRoute(rank)
	return r.Allows(t.Name, t)
}

// AllowsWorlds reports whether procs of ours may have a link that another world made by t.
func (rt *Table) AllowsWorlds(l link.Link, t *Transport) bool {
	return AllowsWorldsResume(rt, l, t) && !rt.Drained.Has(t.Name)
}

// AllowsWorldsResume is AllowsWorlds for a further connection of a link.
func AllowsWorldsResume(rt *Table, l link.Link, t *Transport) bool {
	r := rt.RouteToWorlds(nil)
	return r.Allows(t.Name, t) && hasPlane(l, r.Planes)
}

// PlainCandidate returns the candidate by which IMPI makes channels: a TCP connection to the port
// that the peer has announced.
func (rt *Table) PlainCandidate(from string, peer wire.HostRank) Candidate {
	x := rt.World.Hosts[peer]
	return Candidate{
		Transport: rt.Channels,
		Address:   netip.AddrPortFrom(x.Address.Addr(), uint16(x.Port)).String(),
		From:      from,
		Plain:     true,
	}
}

// RouteToWorlds returns the site's route to procs of other worlds, with the demands in their card,
// theirs, which is nil if it is not known.
func (rt *Table) RouteToWorlds(theirs *dynamic.BusinessCard) route.Route {
	return shared(CurrentSite(rt).RouteTo("*"), route.DemandOf(theirs, route.AnyClient))
}

// shared returns a route of the site's file with the stricter of its own secrecy and theirs.
func shared(r config.Route, theirs route.Secrecy) route.Route {
	return route.Route{Direct: r.Direct, Prefer: r.Prefer, Planes: r.DataPlane, Secrecy: max(SecrecyOf(r), theirs)}
}
