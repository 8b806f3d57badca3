package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
)

// Nodes of different sites can reach each other only in the ways that their procs can. So a node
// asks another site over a link like that between two procs of the sites: it sends a links.Request
// and receives a links.Answer. If that cannot be, it asks over a channel.

const (
	maxQuestion = 16 << 10 // bytes
	maxAnswer   = 16 << 20
	siteLimit   = time.Second      // for a node to answer another site, which may ask for more
	mostLimit   = 20 * time.Second // that it may ask for
	mostAsked   = 4                // questions of other sites that are answered at a time
	mostTries   = 3                // hosts of a site that are tried
	mostLog     = 256 << 10        // bytes of the logs of all hosts of a site
)

// Serve answers the node of another site.
func (c *Control) Serve(ctx context.Context, a *accept.Arrival) error {
	h, verdict := a.Hello, dynamic.Accepted
	switch r := c.Direct.Routes; {
	case c.Procs.OfRank(h.Dst) == nil || int(h.Src) >= r.World.Procs.Len():
		verdict = dynamic.UnknownRank
	case !r.Allows(h.Src, a.At.Transport), !r.AllowsPlane(h.Src, a.Link):
		verdict = dynamic.NotAllowed
	case !c.enter(ctx):
		verdict = dynamic.Busy
	default:
		defer func() { <-c.asked }()
	}
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	defer a.Link.Close()
	reads, cancel := context.WithTimeout(ctx, siteLimit)
	defer cancel()
	b, err := dial.NewBlocking(reads, a.Link)
	if err != nil {
		return err
	}
	m := dial.Messages{Blocking: b, MaxSize: maxAnswer}
	var r links.Request
	if err := (dial.Messages{Blocking: b, MaxSize: maxQuestion}).Read(&r); err != nil {
		return err
	}
	if r.Account {
		c.last.askedBy(c.Site.Routes.World.Procs.At(h.Src).Client)
	}
	ctx, cancel = context.WithTimeout(ctx, limitOf(r))
	defer cancel()
	answer := answerSite(ctx, c, r)
	answer.Reports = c.Reports && r.Account
	if m.Blocking, err = dial.NewBlocking(ctx, a.Link); err != nil {
		return err
	}
	err = m.Write(answer)
	if w := c.Site.Routes.World; err == nil && r.Account && isLast(answer, w.Clients[w.Self].NProcs) {
		c.last.heard(w.Procs.At(h.Src).Client)
	}
	return err
}

// limitFor returns how long the node of another site may take if the answer is wanted by ctx: what it
// knows by then of hosts that do not answer has to come in time.
func limitFor(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return time.Until(deadline) * 3 / 4
}

// limitOf returns how long a node may take for the answer to another site.
func limitOf(r links.Request) time.Duration { return min(max(siteLimit, r.Limit), mostLimit) }

// answerSite answers a request of the node of another site.
func answerSite(ctx context.Context, c *Control, r links.Request) links.Answer {
	if r.Op != links.OpLinks || r.Host != "" {
		return links.Answer{Error: fmt.Sprintf("%v: other sites may ask for links only, of all hosts", links.ErrRequest)}
	}
	answer := c.Answer(ctx, links.Request{Op: links.OpLinks, Calls: r.Calls, Account: r.Account, ByHost: r.ByHost, Log: r.Log})
	shortenLogs(&answer)
	return answer
}

func shortenLogs(a *links.Answer) {
	hosts := 1 + len(a.Others)
	if a.Node != nil {
		a.Node.KeepLog(mostLog / hosts)
	}
	for _, o := range a.Others {
		if o.Node != nil {
			o.Node.KeepLog(mostLog / hosts)
		}
	}
}

func (c *Control) enter(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, siteLimit)
	defer cancel()
	select {
	case c.asked <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Control) ofSites(ctx context.Context, r links.Request) (others []links.HostAnswer) {
	if !c.isReady() || len(c.Procs.All()) == 0 {
		return nil
	}
	w := c.Site.Routes.World
	all := make([][]links.HostAnswer, len(w.Clients))
	var wg sync.WaitGroup
	for i := range w.Clients {
		if x := &w.Clients[i]; x.Own && x.Rank != w.Self && x.NProcs > 0 && !c.Losses.Site(x) {
			wg.Go(func() { all[i] = c.ofOtherSite(ctx, x, r) })
		}
	}
	wg.Wait()
	return slices.Concat(all...)
}

// ofOtherSite asks another site, by one of its first hosts that has procs and answers, over a link
// or else over a channel.
func (c *Control) ofOtherSite(ctx context.Context, x *startup.ClientInfo, r links.Request) []links.HostAnswer {
	began, whole := time.Now(), place{int(x.Rank), anyHost}
	why := asksByChannel(c, x) // not
	within, cancel := ctx, func() {}
	if deadline, ok := ctx.Deadline(); ok && why == nil {
		within, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	a, no := askByLink(within, c, x, r)
	cancel()
	byChannel := a.Node == nil && why == nil && ctx.Err() == nil
	if byChannel {
		var err error
		if a, err = askByChannel(ctx, c, x, r); err != nil || a.Node == nil {
			no.add(err)
		}
	} else if a.Node == nil && why != nil && no.notAsked() {
		no.add(fmt.Errorf("%w: %w", links.ErrNotAsked, why))
	}
	if a.Node == nil {
		o := links.HostAnswer{About: c.name(x), Error: no.Error(), NotAsked: no.notAsked()}
		if !o.NotAsked {
			o.Since = c.mute.since(whole, began)
		}
		return []links.HostAnswer{o}
	}
	c.last.by(x.Rank, byChannel)
	if a.Reports && !byChannel {
		c.last.wanted(x.Rank)
	}
	c.mute.answered(whole)
	return c.believed(x, append([]links.HostAnswer{{About: a.Node.NodeInfo, Node: a.Node}}, a.Others...))
}

// unanswered are the reasons why another site has not answered.
type unanswered struct {
	no     []string // there was no way to ask it
	silent []string // it was asked
}

// add adds a reason. A nil error means that the answer had nothing of a node.
func (u *unanswered) add(err error) {
	list := &u.silent
	switch {
	case err == nil:
		err = errors.New("its node says nothing of its links")
	case errors.Is(err, context.DeadlineExceeded):
		err = links.ErrSilent
	case errors.Is(err, links.ErrNotAsked):
		list = &u.no
	}
	text := strings.TrimPrefix(err.Error(), links.ErrNotAsked.Error()+": ")
	if !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

func (u *unanswered) notAsked() bool { return len(u.silent) == 0 }

// Error returns the reasons. That there was no way counts only if there was none at all.
func (u *unanswered) Error() string {
	if u.notAsked() {
		return fmt.Sprintf("%v: %s: run the command there too", links.ErrNotAsked, strings.Join(u.no, ", and "))
	}
	return strings.Join(u.silent, "; ")
}

// askByLink asks another site over a link like those of its procs.
func askByLink(ctx context.Context, c *Control, x *startup.ClientInfo, r links.Request) (a links.Answer, no unanswered) {
	for _, peer := range c.firstProcs(x) {
		a, err := c.askNode(ctx, peer, r)
		if err == nil && a.Node != nil {
			return a, no
		}
		no.add(err)
	}
	return links.Answer{}, no
}

// hasLink reports whether a link could be made by which another site could be asked.
func hasLink(c *Control, x *startup.ClientInfo) bool {
	return slices.ContainsFunc(c.firstProcs(x), func(peer wire.WorldRank) bool {
		return len(c.Direct.Candidates(direct.Pair{Local: c.Procs.All()[0].Rank(), Peer: peer})) > 0
	})
}

// otherSites returns the job's other own sites of which a condition holds.
func otherSites(c *Control, holds func(*startup.ClientInfo) bool) (sites []links.NodeInfo) {
	if !c.isReady() || len(c.Procs.All()) == 0 {
		return nil
	}
	w := c.Site.Routes.World
	for i := range w.Clients {
		if x := &w.Clients[i]; x.Own && x.Rank != w.Self && x.NProcs > 0 && holds(x) {
			sites = append(sites, c.name(x))
		}
	}
	return sites
}

// Unreachable returns the job's other own sites that this node cannot ask, neither over links nor
// over channels.
func Unreachable(c *Control) []links.NodeInfo {
	return otherSites(c, func(x *startup.ClientInfo) bool { return !hasLink(c, x) && asksByChannel(c, x) != nil })
}

// believed are the hosts of another site that its answer may be about, without what this node knows
// better: that site may be wrong, or lie.
func (c *Control) believed(x *startup.ClientInfo, all []links.HostAnswer) (others []links.HostAnswer) {
	id, job := jobID(c.Site.Routes.World), c.name(x)
	ahead := time.Duration(0) // of the clock there
	if n := all[0].Node; n != nil && !n.Now.IsZero() {
		ahead = time.Since(n.Now)
	}
	for _, o := range all[:min(len(all), x.NHosts)] {
		if o.About.Client != int(x.Rank) || o.About.ID != "" && o.About.ID != id {
			continue
		}
		o.About.Job, o.About.Site, o.About.ID = job.Job, job.Site, id
		if !o.Since.IsZero() {
			o.Since = o.Since.Add(ahead)
		}
		if n := o.Node; n != nil {
			n.NodeInfo, n.Sites, n.Unused, n.Left = o.About, nil, 0, 0
			n.Procs = slices.DeleteFunc(n.Procs, func(p links.Proc) bool { return p.Rank < int(x.FirstProc) || p.Rank >= int(x.FirstProc)+x.NProcs })
			n.Procs = n.Procs[:min(len(n.Procs), x.NProcs)]
			for i := range n.Procs {
				n.Procs[i].Account.Truncate(c.Site.Routes.World.Procs.Len())
			}
			n.Views = slices.DeleteFunc(n.Views, func(v links.View) bool {
				return v.Local < 0 || v.Peer < 0 || max(v.Local, v.Peer) >= c.Site.Routes.World.Procs.Len()
			})
			n.Views = n.Views[:min(len(n.Views), links.MaxViews)]
			n.KeepLog(mostLog / x.NHosts)
			n.ByHost = slices.DeleteFunc(n.ByHost, func(h links.HostCounts) bool {
				return h.From < int(x.FirstHost) || h.From >= int(x.FirstHost)+x.NHosts || h.To < 0 || h.To >= len(c.Site.Routes.World.Hosts)
			})
			n.ByHost = n.ByHost[:min(len(n.ByHost), links.MaxViews)]
			for i := range n.ByHost {
				n.ByHost[i].Links = n.ByHost[i].Links[:min(len(n.ByHost[i].Links), links.MaxKinds)]
			}
			n.Lost = slices.DeleteFunc(n.Lost, func(l links.Loss) bool {
				return l.First < 0 || l.Last < l.First || l.Last >= c.Site.Routes.World.Procs.Len()
			})
			n.Lost = n.Lost[:min(len(n.Lost), c.Site.Routes.World.Procs.Len())]
			n.Spares = n.Spares[:min(len(n.Spares), links.MaxSpares)]
			n.SetClock(time.Now())
		}
		others = append(others, o)
	}
	return others
}

func (c *Control) name(x *startup.ClientInfo) links.NodeInfo {
	return links.NodeInfo{Job: c.Name, ID: jobID(c.Site.Routes.World), Site: c.Site.Routes.SiteName(int(x.Rank)), Client: int(x.Rank)}
}

func (c *Control) firstProcs(x *startup.ClientInfo) (ranks []wire.WorldRank) {
	w, last := c.Site.Routes.World, -1
	for i := range x.NProcs {
		rank := x.FirstProc + wire.WorldRank(i)
		if h := int(w.Procs.At(rank).Host); h != last {
			last, ranks = h, append(ranks, rank)
		}
		if len(ranks) == mostTries {
			break
		}
	}
	return ranks
}

func (c *Control) askNode(ctx context.Context, peer wire.WorldRank, r links.Request) (a links.Answer, err error) {
	x := direct.Pair{Local: c.Procs.All()[0].Rank(), Peer: peer}
	err = errNotAsked(routes.DrainedCandidates(c.Site.Routes, x.Local, x.Peer))
	for _, w := range c.Direct.Candidates(x) {
		a, err = c.askBy(ctx, &dynamic.Hello{Src: x.Local, Dst: x.Peer, Status: true}, w, r)
		if err == nil || ctx.Err() != nil {
			return a, err
		}
	}
	return a, err
}

// errNotAsked says why another site cannot be asked over a link. drained are the drained
// transports that lead there, if any.
func errNotAsked(drained []string) error {
	if len(drained) > 0 {
		return fmt.Errorf("%w: only a transport leads there that is drained here, %s (impi-node undrain ends that)", links.ErrNotAsked, strings.Join(drained, ", "))
	}
	return fmt.Errorf("%w: no transport leads there, or the route has direct = false", links.ErrNotAsked)
}

func (c *Control) askBy(ctx context.Context, hello *dynamic.Hello, w routes.Candidate, r links.Request) (a links.Answer, err error) {
	l, err := c.Direct.Dial(ctx, hello, w)
	if err != nil {
		return a, fmt.Errorf("%s: %w", w.Transport.Name, err)
	}
	defer l.Close()
	b, err := dial.NewBlocking(ctx, l)
	if err != nil {
		return a, fmt.Errorf("%s: %w", w.Transport.Name, err)
	}
	m := dial.Messages{Blocking: b, MaxSize: maxAnswer}
	r.Limit = limitFor(ctx)
	if err := m.Write(r); err != nil {
		return a, fmt.Errorf("%s: %w", w.Transport.Name, err)
	}
	if err := m.Read(&a); err != nil {
		return a, fmt.Errorf("%s: %w", w.Transport.Name, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}
