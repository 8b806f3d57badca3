package direct

import (
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// nativeState is State for a pair whose messages go by the site's own MPI. What that does is not
// known here, but the proc counts what it hands to it.
func (d *Links) nativeState(x Pair, l *wireup.LinkStats) links.State {
	switch {
	case d.Procs.OfRank(x.Local).State() == ending.Finished:
		return links.StateEnded
	case l != nil && (l.Messages > 0 || l.Sent > 0 || l.Received > 0):
		return links.StateLinked
	}
	return links.StateUnused
}

func (d *Links) nativeName() string { return config.NativeName + " (" + d.Routes.Native + ")" }

// native says of the site's own MPI, for a pair within the site, whether it is used, or why not. ok
// is false where there is none.
func (d *Links) native(x Pair) (c links.Candidate, ok bool) {
	if d.Routes.Native == "" || d.Routes.World.Procs.At(x.Peer).Client != d.Routes.World.Self {
		return c, false
	}
	c = links.Candidate{Transport: d.nativeName(), Verdict: links.Excluded}
	switch r := d.Routes.RouteTo(x.Peer); {
	case routes.UsesNative(d.Routes, x.Local, x.Peer) && r.NativeUsual && r.NativeAt > 0:
		c.Verdict, c.Reason = links.Chosen, "it is preferred unless shared memory is possible"
	case routes.UsesNative(d.Routes, x.Local, x.Peer) && r.NativeAt == 0:
		c.Verdict, c.Reason = links.Chosen, "the route prefers the site's own MPI to all transports"
	case routes.UsesNative(d.Routes, x.Local, x.Peer):
		c.Verdict, c.Reason = links.Chosen, "none of the transports that the route prefers to the site's own MPI is possible"
	case !r.Native:
		c.Rule, c.Reason = route.NotPreferred, "\"native\" is not in the route's prefer, which is "+routes.Quoted(r.Prefer)
	case !r.Direct:
		c.Rule, c.Reason = route.DirectOff, "the route has direct = false"
	case d.Routes.SharedRoute(x.Peer).Secrecy == route.Encrypted:
		c.Rule, c.Reason = route.NotEncrypted, "the route has require_tls, and whether the site's own MPI encrypts is not known"
	case r.NativeUsual:
		c.Verdict, c.Reason = links.Possible, "not needed: "+d.Candidates(x)[0].Transport.Name+
			" is faster within a machine than the site's own MPI; \"native\" first in the route's prefer changes that"
	default:
		c.Verdict, c.Reason = links.Possible, "not needed: a transport that the route prefers is possible"
	}
	return c, true
}

// withNative adds the site's own MPI to the candidates of a pair. Candidates to which it is
// preferred are not dialled.
func (d *Links) withNative(x Pair, list []links.Candidate) []links.Candidate {
	c, ok := d.native(x)
	if !ok {
		return list
	}
	if c.Verdict != links.Chosen {
		return append(list, c)
	}
	for i := range list {
		if list[i].Verdict == links.Possible {
			list[i].Reason = "not needed: " + config.NativeName + " works"
		}
	}
	return slices.Insert(list, 0, c)
}

func preferred(r config.Route) []string {
	if !r.Native {
		return r.Prefer
	}
	return slices.Insert(slices.Clone(r.Prefer), r.NativeAt, config.NativeName)
}
