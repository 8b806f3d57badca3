package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/internal/spawner/spares"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// takeSpare answers the greeting of a spare site's node, and keeps its link for spawns.
func takeSpare(ctx context.Context, n *node, a *accept.Arrival) error {
	verdict := dynamic.Accepted
	switch {
	case n.spareSites == nil || a.Hello.Dst != wire.WorldRank(n.hosts[a.At.Host.Index].Rank):
		verdict = dynamic.UnknownRank // a spawned world has no spare sites
	case n.routes.Drained.Has(a.At.Transport.Name):
		verdict = dynamic.Busy // the host is there, which a spare site must not take for lost
	case !n.routes.AllowsWorlds(a.Link, a.At.Transport):
		verdict = dynamic.NotAllowed
	}
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	if verdict != dynamic.Accepted || !n.tasks.Go(func() { n.spareSites.ServeLink(n.tasks, a.Link) }) {
		return a.Link.Close()
	}
	return nil
}

// spareNode is the node of a spare site, which has no procs but those that are spawned there.
type spareNode struct {
	n    *node
	file *config.Job       // as it was read
	job  *startup.Job      // the job for which it is spare; nil until the server has sent it
	site *spares.SpareNode // nil until job is known

	mu    sync.Mutex
	ends  ending.Spare
	there chan struct{} // closed when procs may be spawned here
	over  chan struct{} // closed when the job is over
	most  int           // procs at a time
}

// newSpareNode makes the node of a spare site. As far as links and spawns are concerned the site is
// a job of its own, of which the other sites of the file are no clients.
func newSpareNode(n *node) *spareNode {
	s := &spareNode{n: n, file: n.opt.Job, there: make(chan struct{}), over: make(chan struct{})}
	own := *n.opt.Job
	self := n.opt.Site
	self.Client = 0
	own.Sites, own.Spares = []config.Site{self}, nil
	for i, other := range n.opt.Job.All() {
		if other.Name != self.Name {
			other.Client = -1 - i
			own.Sites = append(own.Sites, other)
		}
	}
	n.opt.Job = &own
	return s
}

// taken returns what the spawner calls when the number of spawned procs may have changed, or nil if
// the site is not spare.
func (s *spareNode) taken() func() {
	if s == nil {
		return nil
	}
	return func() { go s.tell() } // the spawner's lock is held
}

// tell has the hosts of the job told how many procs there are.
func (s *spareNode) tell() {
	procs := s.procs()
	s.mu.Lock()
	s.most = max(s.most, procs)
	x := s.site
	s.mu.Unlock()
	if x != nil {
		x.ProcsChanged()
	}
}

func (s *spareNode) procs() int {
	procs, _ := s.n.spawner.InUse()
	return procs
}

func (s *spareNode) run(ctx context.Context) error {
	n := s.n
	transports, err := begin(ctx, n)
	if transports != nil {
		defer transports() //nolint:errcheck // it is returned below, or another one was first
	}
	if err != nil {
		return err
	}
	if err := transports(); err != nil {
		return err
	}
	await(n, func() string { return "the job's server and its sites, which have no procs here: this site is spare" })
	n.log.Info("this site is spare: it waits for the job")
	job, token, err := n.client.JoinSpare(ctx)
	if err != nil {
		return err
	}
	n.routes.World = s.world(token)
	n.job = n.routes.World
	n.tasks = lifetime.NewGroup(ctx)
	close(s.there)
	if job == nil {
		return n.client.AwaitHead(ctx)
	}
	if err := s.offer(job); err != nil {
		return err
	}
	await(n, s.waits)
	n.control.WriteJobID()
	n.log.Info("this spare site waits for procs that are spawned here", "procs_of_the_job", job.Procs.Len(), "sites", len(job.Clients))
	select {
	case <-s.over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	n.client.LeaveSpare()
	s.mu.Lock()
	f, _ := s.ends.Over()
	most := s.most
	s.mu.Unlock()
	if f != nil {
		return f
	}
	if most == 0 {
		n.log.Info("the job is over, and this spare site was not needed")
	} else {
		n.log.Info("the job is over, and this spare site was taken", "most_procs", most)
	}
	return nil
}

func (s *spareNode) waits() string { return "procs that are spawned here: this site is spare" }

// world describes the site as a job of its own, with the token of the job.
func (s *spareNode) world(token dynamic.Token) *startup.Job {
	n := s.n
	j := &startup.Job{AllOwn: true, Token: token, Secret: token}
	hosts := n.opt.Site.Hosts
	if n.cluster != nil {
		hosts = n.cluster.Hosts
	}
	for _, h := range hosts {
		j.Hosts = append(j.Hosts, startup.HostInfo{Address: wire.HostIDFrom(h.Address, wire.IPv4Mapped)})
	}
	j.Clients = []startup.ClientInfo{{NHosts: len(hosts), Own: true, Versions: []wire.Version{wire.Version00, wire.PrivateVersion}}}
	return j
}

func (s *spareNode) offer(job *startup.Job) error {
	n := s.n
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	hosts := n.opt.Site.Hosts
	if n.cluster != nil {
		hosts = n.cluster.Hosts
	}
	cards, rank, err := routes.ReadCards(&job.Procs)
	if err != nil {
		return fmt.Errorf("business card of rank %d: %w", rank, err)
	}
	d := &spareDialler{n: n, job: job, cards: cards, ours: site.SpareCard(n.site), anyhow: s.withoutServer}
	x := spares.NewSpareNode(spares.Settings{
		Name: n.opt.Site.Name, Instance: binary.BigEndian.Uint64(id[:]), Hosts: hosts, Log: n.log, Tasks: n.tasks,
		Candidates: d.candidates, Dial: d.dial, HostName: func(h wire.HostRank) string { return s.hostName(job, h) }, Procs: s.procs,
		Serve:  func(l link.Link, part *spawn.Part) { n.spawner.ServePart(n.tasks, l, part) },
		Linked: func(h wire.HostRank) { s.with(func(e *ending.Spare) { e.AddHost(h) }) },
		Over:   func(h wire.HostRank, failure string) { s.with(func(e *ending.Spare) { e.HostOver(h, failure) }) },
		Lost:   func(h wire.HostRank, why string) { s.with(func(e *ending.Spare) { e.HostLost(h, why) }) },

		Patience: max(n.opt.Job.Limits.Resume, routes.SilenceLimit(n.opt.Job)),
	})
	var all []wire.HostRank
	for i := range job.Hosts {
		all = append(all, wire.HostRank(i))
		s.ends.AddHost(wire.HostRank(i))
	}
	s.mu.Lock()
	s.job, s.site = job, x
	s.mu.Unlock()
	n.tasks.Go(func() {
		n.client.AwaitServerEnd(func(f *ending.Failure) { s.with(func(e *ending.Spare) { e.ServerReported(f) }) }, func(why string) {
			n.log.Warn("the job's server is lost; this spare site goes on while hosts of the job are there", "reason", why)
			s.with(func(e *ending.Spare) { e.ServerLost(why) })
		})
	})
	x.KeepLinks(all)
	return nil
}

// withoutServer reports whether only the hosts of the job can say that it is over.
func (s *spareNode) withoutServer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends.WithoutServer()
}

// with has f tell of an event, and ends the wait if the job is over by it.
func (s *spareNode) with(f func(*ending.Spare)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, before := s.ends.Over()
	f(&s.ends)
	if _, over := s.ends.Over(); over && !before {
		close(s.over)
	}
}

func (s *spareNode) hostName(job *startup.Job, h wire.HostRank) string {
	x := job.Hosts[h]
	return fmt.Sprintf("host %v of %s", x.Address.Addr(), routes.ClientName(s.file, x.Client))
}

// Describe adds the state of the site to d, for impi-node status.
func (s *spareNode) Describe(d *links.Node) {
	x := links.Spare{Name: s.n.opt.Site.Name, State: string(spawn.SpareWaiting), Here: true, PID: d.PID}
	if x.Procs = s.procs(); x.Procs > 0 {
		x.State = string(spawn.SpareTaken)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.job == nil {
		x.State = string(spawn.SpareAbsent)
	}
	d.Spares = append(d.Spares, x)
}

// Known returns the job for which the site is spare, or nil if that is not known yet.
func (s *spareNode) Known() *startup.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.job
}

type spareDialler struct {
	n     *node
	job   *startup.Job
	cards routes.Cards
	ours  *dynamic.BusinessCard

	anyhow func() bool // whether hosts are dialled by drained transports rather than not at all
}

// candidates lists how a host can be dialled now, and reports whether it could be by drained
// transports alone.
func (d *spareDialler) candidates(to wire.HostRank) (now []routes.Candidate, drained bool) {
	theirs := d.cards.At(d.job.Hosts[to].FirstProc)
	if theirs == nil {
		return nil, false
	}
	return routes.SpareCandidates(d.n.routes, d.ours, theirs, d.n.opt.Site.Hosts[0].Address.String(), d.anyhow())
}

func (d *spareDialler) dial(ctx context.Context, to wire.HostRank, by routes.Candidate) (link.Link, error) {
	theirs := d.cards.At(d.job.Hosts[to].FirstProc)
	hello := dynamic.Hello{Spare: true, Dst: wire.WorldRank(to)}
	return dial.DialAndGreet(ctx, d.job.Token, by.Transport.WithPlanes(routes.DataPlanes(d.n.routes.RouteToWorlds(theirs).Planes)), &hello, by)
}
