// Package inspect answers requests at a node's control socket: those of impi-node links, probes of
// links, and reloads of plugins.
package inspect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/channel"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/loglimit"
	"github.com/openimpi/impi/internal/operator/probe"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
)

// procsLimit is how long procs and switches have at least to answer about their links. They take
// microseconds, unless they are stopped or compute, or have to wait for a core.
const procsLimit = 500 * time.Millisecond

// limitOfProcs returns how long procs and switches have if ctx is that of the whole answer: more than
// procsLimit where somebody waits long for it.
func limitOfProcs(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(procsLimit, time.Until(deadline)/8)
	}
	return procsLimit
}

// Settings are what a node can report while it starts.
type Settings struct {
	Name  string // of the job
	Site  *site.Site
	Procs *procs.Set
	Ready <-chan struct{} // closed when the job runs, after Run

	Cluster *client.Cluster // hosts of the site that have nodes of their own; nil: there are none

	Reload func(ctx context.Context, check bool, text string) (links.FileReload, error) // reads the job file again
	Text   func() (string, error)                                                       // the file as it is now

	Log func() []loglimit.Line // the node's last lines

	Waits func() string // what the node waits for in startup; empty: nothing
	Spare Spare         // nil: the node is not that of a spare site

	Spawned bool // the node is of a spawned world, and its transports are those of the site's own node
	Reports bool // this node writes a report, for which it needs the final figures of other sites
}

// Spare is what the node of a spare site can report. Such a node has no procs of the job, so that
// it never calls SetRunning.
type Spare interface {
	Describe(*links.Node)
	Known() *startup.Job // the job for which it is spare; nil: not known yet
}

// Worlds are the links to other worlds.
type Worlds interface {
	Describe(*links.Node)
	CountLinks(transport string, chosen func(plane string) bool) (resumable, others int)
}

// Running is what a node can report once the job runs.
type Running struct {
	Hosts    []Host
	Direct   *direct.Links
	Channels *channel.Channels
	Prober   *probe.Prober
	Worlds   Worlds
	Client   interface{ Describe(*links.Node) } // the job's server
	Spares   interface{ Describe(*links.Node) } // of the job
	Losses   interface {
		Describe(*links.Node)
		Site(*startup.ClientInfo) bool // reports whether a site is lost as a whole
	}
}

// Host is a host of the site with its packet switch.
type Host struct {
	*site.Host
	Switch  *packetswitch.Switch
	NoBoard string // why its procs have no board; empty: they have one
}

// Control answers requests at a node's control socket.
type Control struct {
	Settings
	Running
	server *links.Server // nil if it could not be opened
	asked  chan struct{} // holds questions of other sites that are being answered
	byPeer byPeer        // that came over channels

	rereading sync.Mutex // at the head: one reload at a time

	End *EndNotifier

	last   finalAnswers
	resent retransmits
	mute   mute
}

// Open opens a node's control socket. If that fails, the operator is warned and the job continues.
func Open(s Settings) *Control {
	c := &Control{Settings: s, asked: make(chan struct{}, mostAsked), End: &EndNotifier{over: make(chan struct{})}}
	err := c.writeAbout()
	if err == nil {
		c.server, err = links.Serve(filepath.Join(s.Site.Dir, links.SocketName), c.Answer)
	}
	if err != nil {
		s.Site.Log.Warn("impi-node links will not find this node", "error", err)
	}
	if c.Cluster != nil {
		c.Cluster.AnswerBy(client.Inspection, c.answerOther)
	}
	return c
}

// SetRunning sets what runs. It has to be called before Ready is closed; until then r is not used.
func (c *Control) SetRunning(r Running) { c.Running = r }

// WriteJobID writes the job's ID, which is known now, to the run directory, and what else is known
// of the job.
func (c *Control) WriteJobID() {
	if err := errors.Join(c.writeAbout(), writeKnown(c)); err != nil {
		c.Site.Log.Debug("cannot write to the runtime directory", "error", err)
	}
}

// Close stops answering. If somebody waits for the end of the job, it first gives them the time to
// hear of it.
func (c *Control) Close() {
	if c.Cluster != nil {
		c.Cluster.AnswerBy(client.Inspection, nil)
	}
	switch {
	case c.server == nil:
	case c.End.Awaiting() > 0:
		c.server.Drain(endingLimit)
	default:
		c.server.Close()
	}
}

func (c *Control) writeAbout() error {
	b, err := json.Marshal(c.about())
	if err != nil {
		return err
	}
	return writeFile(c, links.AboutName, b)
}

func writeFile(c *Control, name string, b []byte) error {
	path := filepath.Join(c.Site.Dir, name)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// writeKnown writes what is told of the node while it does not answer.
func writeKnown(c *Control) error {
	if !c.isReady() {
		return nil // the node of a spare site
	}
	var d links.Node
	c.Client.Describe(&d)
	k := links.Known{Sites: c.sites(), Server: d.Server}
	for _, p := range c.Procs.All() {
		k.Procs = append(k.Procs, links.KnownProc{Rank: int(p.Rank()), PID: p.PID()})
	}
	b, err := k.Encode()
	if err != nil || b == nil {
		return err
	}
	return writeFile(c, links.KnownName, b)
}

func (c *Control) about() links.NodeInfo {
	site := c.Site.Routes.Site
	a := links.NodeInfo{Job: c.Name, Site: site.Name, Client: site.Client, PID: os.Getpid(), Parent: os.Getppid()}
	if at := site.Server.Address; at.Port() != 0 {
		a.Server = at.String()
	}
	switch {
	case c.isReady():
		a.ID = jobID(c.Site.Routes.World)
	case c.Spare != nil:
		if job := c.Spare.Known(); job != nil {
			a.ID = jobID(job)
		}
	}
	if c.Cluster != nil {
		a.Host, a.Number = c.hostName(c.Cluster.Self), c.Cluster.Self
	}
	return a
}

// jobID names the job. All its nodes compute it from the same table of hosts and procs, whose ports
// and process numbers differ from those of other jobs that run now.
func jobID(job *startup.Job) string {
	h := sha256.New()
	for _, x := range job.Hosts {
		fmt.Fprintf(h, "%x %d\n", x.Address, x.Port)
	}
	for _, p := range job.Procs.All() {
		fmt.Fprintf(h, "%x %d\n", p.ID.Host, p.ID.PID)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// ops are answered only once the job runs.
var ops = []links.Op{links.OpVerify, links.OpReread, links.OpDrain, links.OpUndrain, links.OpDrained}

func (c *Control) answer(ctx context.Context, r links.Request) (a links.Answer) {
	var err error
	switch known := r.Op == links.OpProbe || r.Op == links.OpReload || slices.Contains(ops, r.Op); {
	case r.Op == links.OpLinks:
		a.Node = c.Describe(ctx, r)
	case r.Op == links.OpEnding:
		a.Ending = c.End.await(ctx)
	case !known:
		err = fmt.Errorf("%w: this node does not know %q", links.ErrRequest, r.Op)
	case !c.isReady():
		err = fmt.Errorf("%w: the job does not run yet", links.ErrRequest)
	case r.Op == links.OpProbe:
		a.Measure, err = c.Prober.Measure(ctx, r)
	case r.Op == links.OpReread:
		a.Rereads = []links.FileReload{c.reread(ctx, r)}
	case r.Op == links.OpDrain, r.Op == links.OpUndrain, r.Op == links.OpDrained:
		a.Drain, err = drain(ctx, c, r)
	case r.Op == links.OpReload:
		a.Reload, err = c.Site.Reload(ctx, r, func(transport string) (resumable, others int) {
			return throughPlugin(c, transport)
		})
	default:
		a.Files = c.Site.Verify()
	}
	if err != nil {
		a.Error = strings.TrimPrefix(err.Error(), links.ErrRequest.Error()+": ") // which says nothing to people
	}
	return a
}

// isReady reports whether startup is over, so that what it settles may be read.
func (c *Control) isReady() bool {
	select {
	case <-c.Ready:
		return true
	default:
		return false
	}
}

// Describe returns what this node knows. Procs and switches that do not answer within
// limitOfProcs are left out.
func (c *Control) Describe(ctx context.Context, r links.Request) *links.Node {
	if !c.isReady() {
		d := &links.Node{NodeInfo: c.about(), State: links.NodeStarting, Waits: c.Waits()}
		for _, p := range c.Procs.All() {
			x := links.Proc{Rank: -1, PID: p.PID(), Address: addressOf(c, p)}
			x.State, x.Ended = stateOf(p)
			d.Procs = append(d.Procs, x)
		}
		d.Now = time.Now()
		if c.Spare != nil {
			d.State = links.NodeSpare
			c.Spare.Describe(d)
		}
		c.describeLog(d, r)
		return d
	}
	d := &links.Node{NodeInfo: c.about(), State: c.NodeState(), Now: time.Now(), Sites: c.sites(), Transports: c.describeTransports()}
	ctx, cancel := context.WithTimeout(ctx, limitOfProcs(ctx))
	defer cancel()
	stats := make([]*wireup.Stats, len(c.Procs.All()))
	d.Procs = make([]links.Proc, len(c.Procs.All()))
	d.Hosts = make([]links.Host, len(c.Hosts))
	channels := make([][]links.Channel, len(c.Hosts))
	passed := make([][]host.LinkID, len(c.Hosts))
	var wg sync.WaitGroup
	var known estimates
	wg.Go(func() { known = askPlugins(ctx, c) })
	for i, p := range c.Procs.All() {
		wg.Go(func() { d.Procs[i], stats[i] = c.describeProc(ctx, p, r) })
	}
	for i := range c.Hosts {
		wg.Go(func() { d.Hosts[i], channels[i], passed[i] = c.describeHost(ctx, i) })
	}
	wg.Wait()
	for i, list := range channels {
		for k := range list {
			list[k].RTT = cmp.Or(list[k].RTT, known.trips[passed[i][k]])
		}
		d.Channels = append(d.Channels, list...)
	}
	if c.Spawned {
		known.resent = nil // the site's own node tells of what its plugins had to send again
	}
	d.Retransmits = c.resent.sum(transportNames(c), stats, c.Channels.Retransmits(), known.resent)
	c.describePairs(d, stats, &known, r)
	if r.ByHost {
		d.ByHost = c.countByHost(stats, &known)
		links.EstimateRoundTrips(d.ByHost, d.Channels)
	}
	c.describeLog(d, r)
	c.Worlds.Describe(d)
	c.Client.Describe(d)
	c.Losses.Describe(d)
	c.Spares.Describe(d)
	return d
}

func addressOf(c *Control, p *procs.Proc) string {
	if hosts := c.Site.Routes.Site.Hosts; p.Host < len(hosts) && hosts[p.Host].Address.IsValid() {
		return hosts[p.Host].Address.String()
	}
	return ""
}

// NodeState returns how far the node has got: NodeEnding from the first proc that has finished.
func (c *Control) NodeState() links.NodeState {
	if c.Spare != nil {
		return links.NodeSpare
	}
	if !c.isReady() {
		return links.NodeStarting
	}
	if c.Procs.Finishing() {
		return links.NodeEnding
	}
	return links.NodeRunning
}

func (c *Control) sites() (sites []links.Site) {
	onHost := make(map[wire.HostRank]int) // number of procs
	var pids []int
	for _, p := range c.Site.Routes.World.Procs.All() {
		onHost[p.Host]++
		pids = append(pids, int(p.ID.PID))
	}
	for _, x := range c.Site.Routes.World.Clients {
		s := links.Site{
			Name: c.Site.Routes.SiteName(int(x.Rank)), Client: int(x.Rank), Own: x.Own,
			First: int(x.FirstProc), Procs: x.NProcs,
		}
		if first := int(x.FirstProc); first >= 0 && first+x.NProcs <= len(pids) {
			isIdentity := func(n int) bool { return !links.IsProcessID(int64(n)) }
			if of := pids[first : first+x.NProcs]; !slices.ContainsFunc(of, isIdentity) {
				s.PIDs = of
			}
		}
		for i := range x.NHosts {
			h := x.FirstHost + wire.HostRank(i)
			s.Hosts = append(s.Hosts, c.Site.Routes.World.Hosts[h].Address.Addr().String())
			s.HostProcs = append(s.HostProcs, onHost[h])
		}
		if how := routes.Collectives(c.Site.Routes); x.Own {
			s.Collectives = (*links.Collectives)(&how)
		}
		sites = append(sites, s)
	}
	return sites
}

func transportNames(c *Control) (names []string) {
	for _, t := range c.Site.Routes.Transports {
		names = append(names, t.Name)
	}
	return names
}

func (c *Control) describeTransports() (list []links.Transport) {
	for _, t := range c.Site.Routes.Transports {
		can, s := t.Capabilities(), t.Plugin.Status()
		x := links.Transport{
			Name: t.Name, State: string(s.State), PID: s.PID, Links: s.Links, Planes: routes.Planes(can), Reach: string(can.Reach),
			Protocol: s.Protocol, Lacks: s.Lacks, Problem: s.Problem, Starts: s.Starts, Failures: s.Failures, NextTry: s.NextTry,
			Drained: c.Site.Routes.Drained.Has(t.Name),
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

func (c *Control) describeProc(ctx context.Context, p *procs.Proc, r links.Request) (d links.Proc, s *wireup.Stats) {
	d = links.Proc{
		Rank: int(p.Rank()), PID: p.PID(), Host: int(c.Hosts[p.Host].Rank),
		Wait: links.Waiting{Setting: site.EncodeWait(c.Site.Routes.Site.Wait), Progress: c.Site.Routes.Site.Progress},
	}
	d.State, d.Ended = stateOf(p)
	s, err := p.Stats(ctx, r.Calls)
	if r.Account {
		d.Account = p.Account()
	}
	if err != nil {
		if d.State, d.Ended = stateOf(p); d.State != links.ProcEnded { // it may have ended meanwhile
			d.Silent, d.Since = err.Error(), p.SilentSince()
		}
		return d, nil
	}
	d.Blocked, d.Counts = blocked(s.Wait), countsOf(s)
	d.Wait.Budget, d.Wait.Oversubscribed, d.Wait.State, d.Wait.Score = time.Duration(s.Budget), s.Oversubscribed, s.State, s.Score
	d.Agent = counted(s.Agent)
	return d, s
}

func stateOf(p *procs.Proc) (s links.ProcState, ended string) {
	if how, over := p.Ended(); over {
		return links.ProcEnded, how
	}
	switch p.State() {
	case ending.Starting:
		return links.ProcStarting, ""
	case ending.Greeted:
		return links.ProcInit, ""
	case ending.InMPI:
		return links.ProcRunning, ""
	default:
		return links.ProcFinished, ""
	}
}

func countsOf(s *wireup.Stats) *links.Counts {
	c := &links.Counts{
		Unexpected: s.Counts.Unexpected, UnexpectedBytes: s.Counts.UnexpectedBytes, Sleeps: s.Counts.Sleeps, Slept: time.Duration(s.Counts.Slept), Clock: time.Duration(s.Counts.Clock),
		Sent: s.Counts.EndedSent, Received: s.Counts.EndedReceived,
	}
	for _, l := range s.Links {
		c.Messages += l.Messages
		c.Data += l.Data
		c.Sent += l.Sent
		c.Received += l.Received
	}
	return c
}

func blocked(w *wireup.Wait) *links.Blocked {
	if w == nil {
		return nil
	}
	b := &links.Blocked{Time: time.Duration(w.Time), Left: w.Left, Computes: w.Computes}
	for _, c := range w.Calls {
		b.Calls = append(b.Calls, links.Call(c))
	}
	for _, x := range w.Partners {
		b.Partners = append(b.Partners, links.Partner{What: x.What, Any: x.Any, OtherWorld: x.OtherWorld, World: x.World, Peer: int(x.Peer), Tag: x.Tag, Comm: x.Comm, Why: x.Why})
	}
	for _, l := range w.Locks {
		b.Locks = append(b.Locks, links.Lock{Window: l.Window, Holders: plain(l.Holders), Waiters: plain(l.Waiters)})
	}
	return b
}

func plain(ranks []wire.WorldRank) (list []int) {
	for _, r := range ranks {
		list = append(list, int(r))
	}
	return list
}

func counted(s wireup.LinkStats) (b links.Bytes) {
	if s.Counted {
		b.Sent, b.Received = &s.Sent, &s.Received
	}
	return b
}

// describePairs tells of all pairs of a local proc and another one. Unused pairs of large jobs are
// only counted, unless the request wants them.
func (c *Control) describePairs(d *links.Node, stats []*wireup.Stats, known *estimates, r links.Request) {
	world := c.Site.Routes.World
	all := r.All || world.Clients[world.Self].NProcs*(world.Procs.Len()-1) <= r.AllUpTo
	for i, p := range c.Procs.All() {
		local := p.Rank()
		traffic := trafficOf(stats[i])
		for peer := range c.Site.Routes.World.Procs.All() {
			if x := (direct.Pair{Local: local, Peer: peer}); x.Local != x.Peer {
				c.describePair(d, x, stats[i], traffic[x.Peer], known, all, cmp.Or(r.Views, links.MaxViews))
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

// sinceLost sets the time in the view of a lost link to when it was lost, not when it was linked.
func sinceLost(v *links.View, l *wireup.LinkStats, now time.Time) {
	if v.State == links.StateLost && l != nil {
		v.Since = now.Add(-time.Duration(l.DisconnectedFor))
	}
}

func (c *Control) describePair(d *links.Node, x direct.Pair, s *wireup.Stats, l *wireup.LinkStats, known *estimates, all bool, most int) {
	state := c.Direct.State(x, s, l)
	switch {
	case state == links.StateUnused && !all:
		d.Unused++
		return
	case len(d.Views) >= most:
		d.Left++
		return
	}
	v := c.Direct.View(x, state)
	sinceLost(&v, l, d.Now)
	if s != nil {
		v.Traffic = &links.Traffic{}
	}
	if l != nil {
		v.Traffic.Messages, v.Traffic.Data, v.Traffic.RTT = l.Messages, l.Data, cmp.Or(time.Duration(l.RTT), known.of(c, x))
		v.Traffic.Bytes, v.Traffic.Pure, v.Traffic.Compressed = counted(*l), l.Pure, l.Compressed
	}
	d.Views = append(d.Views, v)
}
