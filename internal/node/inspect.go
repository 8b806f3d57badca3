package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// procsLimit is how long procs and switches have to say how their links are:
// they do so within microseconds, or not at all.
const procsLimit = 500 * time.Millisecond

// openControl makes the node one that can be asked. It can do without.
func (n *node) openControl() {
	err := n.writeAbout()
	if err == nil {
		n.control, err = links.Serve(filepath.Join(n.dir.Path, links.SocketName), n.answer)
	}
	if err != nil {
		n.log.Warn("impi-node links will not find this node", "error", err)
	}
}

func (n *node) closeControl() {
	if n.control != nil {
		n.control.Close()
	}
}

// writeAbout writes who this node is, or who it turned out to be, to its run
// directory.
func (n *node) writeAbout() error {
	b, err := json.Marshal(n.about())
	if err != nil {
		return err
	}
	path := filepath.Join(n.dir.Path, links.AboutName)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (n *node) about() links.About {
	a := links.About{Job: n.name(), Site: n.opt.Site.Name, Client: n.opt.Site.Client, PID: os.Getpid(), Parent: os.Getppid()}
	if n.job != nil {
		a.ID = n.jobID()
	}
	return a
}

// jobID names the job as all its nodes do: by who is in it. Ports and process
// numbers make it different from others that run now.
func (n *node) jobID() string {
	h := sha256.New()
	for _, x := range n.job.Hosts {
		fmt.Fprintf(h, "%x %d\n", x.Address, x.Port)
	}
	for _, p := range n.job.Procs {
		fmt.Fprintf(h, "%x %d\n", p.ID.Host, p.ID.PID)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// answer answers a request at the control socket.
func (n *node) answer(ctx context.Context, r links.Request) (a links.Answer) {
	switch r.Op {
	case links.OpLinks:
		a.Node = n.describe(ctx, r)
	case links.OpProbe:
		m, err := n.probeWhenReady(ctx, r)
		if a.Measure = m; err != nil {
			a.Error = err.Error()
		}
	case links.OpReload:
		m, err := n.reloadWhenReady(ctx, r)
		if a.Reload = m; err != nil {
			a.Error = err.Error()
		}
	default:
		a.Error = fmt.Sprintf("%v: this node does not know %q", links.ErrRequest, r.Op)
	}
	return a
}

func (n *node) probeWhenReady(ctx context.Context, r links.Request) (*links.Measure, error) {
	if !n.isReady() {
		return nil, fmt.Errorf("%w: the job does not run yet", links.ErrRequest)
	}
	return n.probeOf(ctx, r)
}

func (n *node) reloadWhenReady(ctx context.Context, r links.Request) (*links.Reload, error) {
	if !n.isReady() {
		return nil, fmt.Errorf("%w: the job does not run yet", links.ErrRequest)
	}
	return n.site.Reload(ctx, r, n.direct.through)
}

// isReady tells whether startup is over, so that what it settles may be read.
func (n *node) isReady() bool {
	select {
	case <-n.ready:
		return true
	default:
		return false
	}
}

// describe tells what this node knows, without waiting for anybody for long.
func (n *node) describe(ctx context.Context, r links.Request) *links.Node {
	if !n.isReady() {
		return &links.Node{
			About: links.About{Job: n.name(), Site: n.opt.Site.Name, Client: n.opt.Site.Client, PID: os.Getpid(), Parent: os.Getppid()},
			Phase: links.PhaseStarting,
		}
	}
	d := &links.Node{About: n.about(), Phase: n.phase(), Sites: n.sites(), Transports: n.describeTransports()}
	ctx, cancel := context.WithTimeout(ctx, procsLimit)
	defer cancel()
	stats := make([]*wireup.Stats, len(n.procs.All()))
	d.Procs = make([]links.Proc, len(n.procs.All()))
	d.Hosts = make([]links.Host, len(n.hosts))
	channels := make([][]links.Channel, len(n.hosts))
	var wg sync.WaitGroup
	for i, p := range n.procs.All() {
		wg.Go(func() { d.Procs[i], stats[i] = n.describeProc(ctx, p) })
	}
	for i, h := range n.hosts {
		wg.Go(func() { d.Hosts[i], channels[i] = h.describe(ctx, n) })
	}
	wg.Wait()
	for _, c := range channels {
		d.Channels = append(d.Channels, c...)
	}
	n.describePairs(d, stats, r)
	n.direct.meet.Describe(d)
	return d
}

// phase is PhaseEnding from the first proc that has finished.
func (n *node) phase() links.Phase {
	if n.procs.Finishing() {
		return links.PhaseEnding
	}
	return links.PhaseRunning
}

func (n *node) sites() (sites []links.Site) {
	for _, c := range n.job.Clients {
		s := links.Site{
			Name: n.routes.SiteName(int(c.Rank)), Client: int(c.Rank), Own: c.Own,
			First: int(c.FirstProc), Procs: c.NProcs,
		}
		for i := range c.NHosts {
			s.Hosts = append(s.Hosts, n.job.Hosts[int(c.FirstHost)+i].Address.Addr().String())
		}
		sites = append(sites, s)
	}
	return sites
}

func (n *node) describeTransports() (list []links.Transport) {
	for _, t := range n.routes.Transports {
		c, s := t.Capabilities(), t.Plugin.Status()
		x := links.Transport{
			Name: t.Name, State: string(s.State), PID: s.PID, Links: s.Links, Planes: routes.Planes(c), Reach: string(c.Reach),
			Protocol: s.Protocol, Lacks: s.Lacks, Problem: s.Problem, Starts: s.Starts, Failures: s.Failures, NextTry: s.NextTry,
		}
		if u, err := t.Plugin.Usage(); err == nil {
			r := links.Resources(u)
			x.Usage = &r
		}
		if s.LastErr != nil {
			x.Error = s.LastErr.Error()
		}
		list = append(list, x)
	}
	return list
}

// describeProc asks a proc.
func (n *node) describeProc(ctx context.Context, p *procs.Proc) (links.Proc, *wireup.Stats) {
	d := links.Proc{
		Rank: int(p.Rank()), PID: p.PID(), Host: int(n.hosts[p.Host].Rank),
		Wait: links.Waiting{Setting: spinSetting(n.opt.Site.Wait)},
	}
	s, err := p.Stats(ctx)
	if err != nil {
		d.Silent = err.Error()
		return d, nil
	}
	d.Wait.Budget, d.Wait.Crowded, d.Wait.State, d.Wait.Score = time.Duration(s.Budget), s.Crowded, s.State, s.Score
	d.Agent = counted(s.Agent)
	return d, s
}

// counted gives the bytes of a link, if they were counted.
func counted(s wireup.LinkStats) (b links.Bytes) {
	if s.Counted {
		b.Sent, b.Received = &s.Sent, &s.Received
	}
	return b
}

// describePairs tells of all pairs of a local proc and another, but for those
// that are not asked for.
func (n *node) describePairs(d *links.Node, stats []*wireup.Stats, r links.Request) {
	all := r.All || len(n.procs.All())*(len(n.job.Procs)-1) <= r.Few
	for i, p := range n.procs.All() {
		local := p.Rank()
		traffic := trafficOf(stats[i])
		for peer := range n.job.Procs {
			if x := (pair{local, wire.WorldRank(peer)}); x.local != x.peer {
				n.describePair(d, x, stats[i], traffic[x.peer], all)
			}
		}
	}
}

func trafficOf(s *wireup.Stats) map[wire.WorldRank]*wireup.LinkStats {
	m := make(map[wire.WorldRank]*wireup.LinkStats)
	if s != nil {
		for i := range s.Links {
			m[s.Links[i].Peer] = &s.Links[i]
		}
	}
	return m
}

func (n *node) describePair(d *links.Node, x pair, s *wireup.Stats, l *wireup.LinkStats, all bool) {
	rec := n.direct.past.of(x.local, x.peer)
	v := links.View{
		Local: int(x.local), Peer: int(x.peer), State: n.stateOf(x, s, l),
		LocalHost: int(n.job.Procs[x.local].Host), PeerHost: int(n.job.Procs[x.peer].Host),
		Transport: rec.transport, Plane: rec.plane, PlaneReason: rec.planeReason,
		Resumes: n.direct.resumes(x), Dialled: rec.dialled, Since: rec.since, Reason: rec.reason,
	}
	switch {
	case v.State == links.StateUnused && !all:
		d.Unused++
		return
	case len(d.Views) == links.MaxViews:
		d.Left++
		return
	}
	ours, theirs := n.routes.Cards[x.local], n.routes.Cards[x.peer]
	v.SameMachine = ours != nil && theirs != nil && ours.SameNode(theirs)
	if v.State == links.StateAgents && v.Reason == "" {
		v.Reason = n.whyAgents(x)
	}
	v.Candidates = n.candidates(x, &rec)
	v.Route = n.describeRoute(x.peer)
	if s != nil {
		v.Traffic = &links.Traffic{}
	}
	if l != nil {
		v.Traffic.Messages, v.Traffic.RTT = l.Messages, time.Duration(l.RTT)
		v.Traffic.Bytes = counted(*l)
	}
	d.Views = append(d.Views, v)
}

// stateOf is a pair's state: what the node made of it, and what the proc says.
func (n *node) stateOf(x pair, s *wireup.Stats, l *wireup.LinkStats) links.State {
	switch n.direct.phase(x) {
	case dynamic.Dialling:
		return links.StateOpening
	case dynamic.Yielding:
		return links.StateWaiting
	case dynamic.Refused:
		return links.StateAgents
	case dynamic.Linked:
		if s == nil && n.procs.Of(x.local).Phase() == procs.Finished || s != nil && l != nil && !l.Direct {
			return links.StateEnded
		}
		return links.StateLinked
	case dynamic.Unlinked:
		if l != nil && (l.Routed || l.Messages > 0) {
			return links.StateAgents
		}
	}
	return links.StateUnused
}

// whyAgents is for pairs of which no direct link was ever tried.
func (n *node) whyAgents(x pair) string {
	switch ours, theirs := n.routes.Cards[x.local], n.routes.Cards[x.peer]; {
	case ours == nil || theirs == nil:
		return n.routes.WhyNoCards(x.peer)
	case !n.routes.RouteTo(x.peer).Direct:
		return "the route has direct = false"
	}
	return dial.NoWay
}

func (n *node) describeRoute(peer wire.WorldRank) links.Route {
	r := n.routes.RouteTo(peer)
	d := links.Route{Prefer: r.Prefer, Direct: r.Direct, DataPlane: r.DataPlane, RequireTLS: r.RequireTLS, Closed: r.Closed}
	for _, b := range n.opt.Site.Routes {
		if b.Site == r.Site {
			d.Site = r.Site // not made up for lack of a block
		}
	}
	return d
}
