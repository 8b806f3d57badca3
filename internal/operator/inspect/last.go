package inspect

import (
	"context"
	"sync"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
)

// finalAnswers has three sets of sites: those whose heads want to know how this site's procs have
// ended, those that have ever asked, and those that know; and a fourth one, of those that have
// answered this one over a channel when they were asked last.
type finalAnswers struct {
	mu                 sync.Mutex
	want, asked, known map[wire.ClientRank]bool
	channel            map[wire.ClientRank]bool
}

func (l *finalAnswers) note(in *map[wire.ClientRank]bool, x wire.ClientRank) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *in == nil {
		*in = make(map[wire.ClientRank]bool)
	}
	(*in)[x] = true
}

func (l *finalAnswers) wanted(x wire.ClientRank) { l.note(&l.want, x) }

func (l *finalAnswers) askedBy(x wire.ClientRank) { l.note(&l.asked, x) }

func (l *finalAnswers) heard(x wire.ClientRank) { l.note(&l.known, x) }

// by records how a site was asked when it answered.
func (l *finalAnswers) by(x wire.ClientRank, channel bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.channel, x); channel {
		if l.channel == nil {
			l.channel = make(map[wire.ClientRank]bool)
		}
		l.channel[x] = true
	}
}

func (l *finalAnswers) isByChannel(x wire.ClientRank) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channel[x]
}

// all reports whether all sites that want the last words and are not gone have them. gone reports
// whether a site is gone, and is told whether it has ever asked.
func (l *finalAnswers) all(gone func(client int, hasAsked bool) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for x := range l.want {
		if !l.known[x] && !gone(int(x), l.asked[x]) {
			return false
		}
	}
	return true
}

// NoMoreQuestions reports whether no site will ask this node any more: each site that writes a report
// has the final figures of this node's site, or asks another host, as the site's first proc is
// there, or is gone.
func NoMoreQuestions(c *Control, gone func(client int, hasAsked bool) bool) bool {
	w := c.Site.Routes.World
	return c.Procs.OfRank(w.Clients[w.Self].FirstProc) == nil || c.last.all(gone)
}

// Reachable returns the job's other own sites that this node can ask.
func Reachable(c *Control) []links.NodeInfo {
	return otherSites(c, func(x *startup.ClientInfo) bool { return hasLink(c, x) || asksByChannel(c, x) == nil })
}

// ReachableAtEnd returns those of them that can be asked when the procs of both sites have passed
// MPI_Finalize, and channels have ended: those that do not answer over a channel alone.
func ReachableAtEnd(c *Control) []links.NodeInfo {
	return otherSites(c, func(x *startup.ClientInfo) bool { return hasLink(c, x) && !c.last.isByChannel(x.Rank) })
}

// AskSite asks one of the sites that Reachable returned.
func AskSite(ctx context.Context, c *Control, client int, r links.Request) []links.HostAnswer {
	return c.ofOtherSite(ctx, &c.Site.Routes.World.Clients[client], r)
}

// isLast reports whether an answer says of so many procs that they have passed MPI_Finalize, or
// ended, so that nothing will be added to what they have counted.
func isLast(a links.Answer, procs int) bool {
	all := append([]links.HostAnswer{{Node: a.Node}}, a.Others...)
	for _, o := range all {
		if o.Node == nil {
			continue
		}
		for i := range o.Node.Procs {
			if s := o.Node.Procs[i].State; s == links.ProcFinished || s == links.ProcEnded {
				procs--
			}
		}
	}
	return procs <= 0
}
