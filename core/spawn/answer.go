package spawn

import (
	"net/netip"
	"slices"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// Judge decides about a request for a part that comes from the node of a host of the job: other
// sites may ask, over links that their procs may have. allowed reports whether procs of the site
// may have such a link with the first proc of that host.
func Judge(job *startup.Job, from wire.HostRank, allowed func(first wire.WorldRank) bool) dynamic.Verdict {
	switch {
	case from < 0 || int(from) >= len(job.Hosts) || job.Hosts[from].NProcs == 0 || job.Hosts[from].Client == job.Self:
		return dynamic.UnknownRank
	case !allowed(job.Hosts[from].FirstProc):
		return dynamic.NotAllowed
	}
	return dynamic.Accepted
}

// HostsFor returns the hosts of a site, as indices, that may start a part that another site asks
// for: those that the part names by an address or, if it names none, all hosts if each is a machine
// (spread), and else the first one.
func (s *Site) HostsFor(p *Part, spread bool) (hosts []int, r *Refusal) {
	addr, _ := netip.ParseAddr(p.Host)
	for i := range s.Hosts {
		if p.Host == "" && (spread || i == 0) || p.Host != "" && s.Hosts[i].is("", addr) {
			hosts = append(hosts, i)
		}
	}
	if len(hosts) == 0 {
		return nil, Refuse(-1, "site %s has no host %s", s.Name, p.Host)
	}
	return hosts, nil
}

// At leaves a request the hosts that are still there, which present reports, of the n hosts of the
// site. It refuses a request for hosts that the site does not have, and if all have left: a host
// does when its part of the job is over. name names a host.
func (w *SlotRequest) At(site string, n int, present func(host int) bool, name func(host int) string) *Refusal {
	if len(w.Hosts) == 0 || slices.ContainsFunc(w.Hosts, func(h int) bool { return h < 0 || h >= n }) {
		return Refuse(-1, "site %s has no host of %d", site, w.Hosts)
	}
	all := w.Hosts
	w.Hosts = slices.DeleteFunc(slices.Clone(all), func(h int) bool { return !present(h) })
	if len(w.Hosts) == 0 {
		return Refuse(-1, "host %s of site %s has left, as its part of the job is over", name(all[0]), site)
	}
	return nil
}

// MayLeave reports whether procs of a part may be about to end, so that waiting for their slots
// makes sense, for the node that has the site's slots. leaving has, for each host of the part whose
// procs run at that node, whether some are (State.Leaving); mine is set if that node has asked for
// the part. It does not know when those at other hosts end, nor those of a part for which another
// host has asked, and so they may.
func MayLeave(leaving []bool, mine bool) bool {
	return !mine || len(leaving) == 0 || slices.Contains(leaving, true)
}
