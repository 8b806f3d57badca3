package job

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// ErrFailed is wrapped by the errors of sites whose job has failed.
var ErrFailed = errors.New("the job has failed")

// retry is how long a node waits before it dials again.
const retry = 50 * time.Millisecond

// site is one client of the job: what its node does.
type site struct {
	drained   bool                          // its plugin is drained
	drains    int                           // how often that was ordered
	listeners map[leg]dynamic.ListenerState // for links between procs
	direct    dynamic.DirectLinks[pair]
	w         *Simulation
	rank      wire.ClientRank
	cfg       Site
	client    client
	conn      *conn
	timer     *kernel.Timer
	job       *startup.Job
	hosts     []*host
	token     dynamic.Token // its proposal for the token of the job
	procs     []*proc
	table     []wireup.Proc // the job's procs, as given to the site's procs
	members   *mpi.Roster   // roster of the table
	end       ending.Ending

	machines *siteHosts // nil: it has one host, or is foreign

	spawner *spawner
	parents parents
	names   nameService
	parts   parts // the parts of a spawned world that it runs; nil: it was not spawned

	spareLinks spawn.Spares[*spareLink, *part] // links over which spare sites offer themselves
	asked      map[*part]func(l *spareLink, why string)

	left    bool // the site has told the server that it has finished or failed
	done    bool // nothing of the site is left
	dead    bool // the site's node has crashed
	spared  bool // the other sites continue without this one
	outcome ending.Outcome
	err     error

	early    *Fault // it fails before it joins the job; nil: it does not
	severed  bool   // the connection to the server was cut: the site continues once its job runs
	finished bool   // the site has finished in order
	heard    bool   // it has received something from the server
	watch    ending.ServerWatch
	without  bool // the site continues without the server, which has reported the lost sites
	untold   bool // the server then closed in order without a reason
}

type host struct {
	s        *site
	number   int // number in its site
	rank     wire.HostRank
	channels *agent.Channels // once the job is known
	dance    *agent.Dance
	began    time.Time     // the dance
	conns    []*kernel.End // by number in the dance
	backlog  []arrival     // connections that arrived before the dance
	board    *hostBoard    // nil: none
	sw       *hostSwitch   // nil until the dance is over
	links    map[wire.HostRank]*kernel.End
	first    map[int][]byte             // first bytes of greetings, by number in the dance
	resumed  map[wire.HostRank]*resumed // channels that it dials
	over     bool                       // its agent has finished
	said     bool                       // of several hosts: the host has told the head that it has finished
	gone     bool                       // of several hosts: nothing of the host is left
	onDemand []*kernel.End              // of channels on demand, also before they are proved
	silent   bool                       // the machine is lost silently: nothing answers at its address
	why      string                     // of several hosts: why the host had lost its parent
	lost     bool                       // of several hosts: a fault has hit the host or one above it
	idle     bool                       // of several hosts: its procs have ended and have not called MPI Init
	survival survival
	meets    *meetingNode // nil: the job has not begun
}

// fini reports whether all procs of the host have finished, so that its agent has sent FINI.
func (h *host) fini() bool {
	for _, p := range h.s.procs {
		if p.h == h && !p.fini {
			return false
		}
	}
	return len(h.s.procs) > 0
}

// client is the client's side of startup: a startup.Client or a foreignClient.
type client interface {
	Start(now time.Time)
	Output() []byte
	Deadline() (time.Time, bool)
	Job() (*startup.Job, bool)
	Err() error
	Tick(now time.Time) error
	Closed(cause error) error
	Receive(b []byte, now time.Time) error
	Finish() error
	Fail(reason error)
}

func newSite(w *Simulation, rank wire.ClientRank, cfg Site) (*site, error) {
	s := &site{w: w, rank: rank, cfg: cfg, spawner: newSpawner(w, int(rank), cfg.Slots), asked: make(map[*part]func(*spareLink, string)), listeners: make(map[leg]dynamic.ListenerState)}
	for i := range w.cfg.Spares {
		s.spareLinks.Declare(spawn.Site{Name: spareName(i)})
	}
	pid := int64(100)
	config := startup.ClientConfig{Rank: rank, Auth: w.cfg.Auth, Params: cfg.Params, Limit: w.cfg.Limit, Foreign: cfg.Foreign != nil}
	config.Token[0], config.Token[1], config.Token[2] = byte(w.k.Rand().Uint32()), 1, byte(w.number)
	if cfg.Foreign == nil {
		s.token = config.Token
		if !cfg.NoOnDemand { // an older release announces nothing
			config.Versions = startup.Abilities{Survives: w.cfg.Survive}.Announce(nil)
		}
	}
	for i, procs := range cfg.Hosts {
		h := &host{s: s, number: i, links: make(map[wire.HostRank]*kernel.End), first: make(map[int][]byte), resumed: make(map[wire.HostRank]*resumed)}
		h.survival.h = h
		s.hosts = append(s.hosts, h)
		if err := h.makeBoard(procs); err != nil {
			return nil, err
		}
		hc := startup.HostConfig{Address: address(rank, i), Port: 1}
		for range procs {
			pid++
			hc.Procs = append(hc.Procs, startup.ProcConfig{ID: wire.Proc{Host: hc.Address, PID: pid}})
		}
		config.Hosts = append(config.Hosts, hc)
	}
	var err error
	if cfg.Foreign != nil {
		s.client, err = newForeignClient(config, *cfg.Foreign), config.Validate()
	} else {
		s.client, err = startup.NewClient(config)
	}
	if err != nil {
		return nil, err
	}
	if len(s.hosts) > 1 && cfg.Foreign == nil {
		s.timer = w.k.After(0, func() {})
		return s, s.newMachines(config)
	}
	s.timer = w.k.After(w.k.Between(0, time.Millisecond), s.connect)
	return s, nil
}

// address returns the address of a host: 10.client.host.1.
func address(c wire.ClientRank, h int) wire.HostID {
	var id wire.HostID
	copy(id[12:], []byte{10, byte(c), byte(h), 1})
	return id
}

func (s *site) connect() {
	switch {
	case s.dead || s.left:
		return
	case s.early != nil:
		declines(s)
		return
	}
	dialServer(s, s.hear, s.serverGone)
	s.client.Start(s.w.time())
	s.timer = s.w.k.After(0, s.tick)
	s.say()
}

// dialServer connects the site with the server. hear and gone are as for newConn.
func dialServer(s *site, hear func([]byte), gone func(error)) {
	spec := s.w.cfg.Links.Server
	spec.Name = fmt.Sprintf("client %d to server", s.rank)
	l := s.w.link(spec, Endpoint{AtClient, int(s.rank)}, Endpoint{AtServer, 0})
	s.conn = newConn(l.Ends[0], s.w.buf, hear, gone)
	s.w.k.After(s.w.k.Between(0, spec.Delay), func() { s.w.server.connect(l.Ends[1], clientPeer(int(s.rank))) })
}

func (s *site) say() {
	if b := s.client.Output(); len(b) > 0 && s.conn != nil {
		s.conn.send(b)
	}
}

func (s *site) tick() {
	if s.dead || s.left {
		return
	}
	if at, ok := s.client.Deadline(); ok {
		if s.w.time().Before(at) {
			s.timer.Reset(at.Sub(s.w.time()))
			return
		}
		s.judge(s.client.Tick(s.w.time()))
	}
}

func (s *site) hear(b []byte) {
	if s.dead || s.left {
		return
	}
	s.heard = true
	err := s.client.Receive(b, s.w.time())
	s.say()
	if outlives(s, err, false) {
		s.without = true
		return
	}
	s.judge(err)
	if x, ours := s.client.(*startup.Client); ours {
		for said := x.TakeLostClient(); said != nil; said = x.TakeLostClient() {
			if !outlives(s, said, true) {
				s.judge(said)
			}
		}
	}
}

func (s *site) serverGone(cause error) {
	if s.dead || s.left || s.without {
		return
	}
	err := s.client.Closed(cause)
	x, foreign := s.client.(*foreignClient)
	if outlives(s, err, false) {
		return
	}
	s.untold = cause == nil && s.heard && (foreign && x.hint == "" || !foreign && errors.Is(err, startup.ErrLost))
	s.judge(err)
}

// outlives reports whether the site goes on, perhaps once its job runs, without the server, whose
// connection has ended by err, or without another site that the server says to have lost.
func outlives(s *site, err error, site bool) bool {
	if err == nil || s.job == nil {
		return false
	}
	now := s.w.time()
	goesOn := s.watch.Lost(now, err, site)
	if !goesOn {
		_, _ = s.watch.Next() // the caller knows it
		return false
	}
	if at, waits := s.watch.Deadline(); waits {
		s.w.k.After(at.Sub(now), func() { watchServer(s, s.watch.Tick) })
	}
	watchServer(s, func(time.Time) {})
	return true
}

// watchServer tells what decides whether the site goes on without the server of an event, and does
// what it says.
func watchServer(s *site, event func(now time.Time)) {
	if s.dead || s.left {
		return
	}
	event(s.w.time())
	for x, ok := s.watch.Next(); ok; x, ok = s.watch.Next() {
		if x.GoesOn {
			s.w.k.Tracef("site %d goes on without the server", s.rank)
		} else {
			s.judge(x.Err)
		}
	}
}

func tieOf(s *site) ending.ServerTie {
	return ending.ServerTie{InJob: tied(s) || s.w.cfg.Serves, Survives: s.w.cfg.Survive, NoChannels: s.w.cfg.OnDemand, FailuresReported: startup.AllListFailVersion(s.job)}
}

// tied reports whether the end of the server ends the site: it runs another MPI or an older
// release, or its job was spawned, or ends with lost procs and so with the node of its server.
func tied(s *site) bool {
	return s.cfg.Foreign != nil || s.cfg.NoOnDemand || s.w.spawned != nil || s.w.cfg.Serves && !s.w.cfg.Survive
}

func nameOfClient(c wire.ClientRank) string { return fmt.Sprintf("site %d", c) }

func (s *site) judge(err error) {
	if err != nil {
		s.fail(ending.ServerFailure(err, s.job != nil, nameOfClient))
		return
	}
	if job, ok := s.client.Job(); ok && s.job == nil {
		s.job = job
		s.watch.Tie = tieOf(s)
		s.w.begin(job)
		if s.w.wrong == nil {
			s.w.wrong = announced(s.w, job)
		}
		if s.w.cfg.Worlds != nil {
			for _, h := range s.hosts {
				h.meets = newMeetings(s)
			}
		}
		s.place()
	}
}

func (s *site) place() {
	for _, p := range s.job.Procs.All() {
		x := wireup.Proc{Host: p.ID.Host[:], PID: p.ID.PID, Client: p.Client, Node: p.Host, Path: wireup.PathChannel, Data: s.with(p.Client).data(), Foreign: s.foreign(p.Client)}
		if len(s.with(p.Client).endpoints()) > 0 {
			x.Path = wireup.PathDirect
		}
		s.table = append(s.table, x)
	}
	for i, h := range s.hosts {
		h.rank = s.job.HostOf(s.rank, i)
		s.w.hosts[h.rank] = h
	}
	s.handOut()
}

// ours reports whether this site and client c run impi, in a job where all clients know our
// extensions.
func (s *site) ours(c wire.ClientRank) bool {
	return s.job.AllOwn && s.cfg.Foreign == nil && s.job.Clients[c].Own
}

// foreign reports whether this site or that of client c runs another MPI, and they are not the same
// site.
func (s *site) foreign(c wire.ClientRank) bool {
	return c != s.rank && (s.cfg.Foreign != nil || s.w.sites[c].cfg.Foreign != nil)
}

func (s *site) connected() {
	for _, h := range s.hosts {
		if h.sw == nil || h.gone {
			return
		}
	}
	self := s.job.Clients[s.rank]
	for i := range self.NProcs {
		r := self.FirstProc + wire.WorldRank(i)
		h := s.hosts[s.job.Procs.At(r).Host-self.FirstHost]
		p, err := s.newProc(h, r)
		if err != nil {
			s.fail(ending.NodeFailed(err))
			return
		}
		s.procs = append(s.procs, p)
		s.w.procs[r] = p
	}
	for _, h := range s.hosts {
		h.survival.begin()
		h.sw.start()
		askOverChannels(h, s.w.cfg.Questions)
	}
	watchServer(s, s.watch.Runs)
}

func (s *site) newProc(h *host, r wire.WorldRank) (*proc, error) {
	spec := s.w.cfg.Links.Proc
	spec.Name = fmt.Sprintf("rank %d to host %d", r, h.rank)
	l := s.w.link(spec, Endpoint{AtProc, int(r)}, Endpoint{AtAgent, int(h.rank)})
	if err := h.sw.attachProc(l.Ends[1], r); err != nil {
		return nil, err
	}
	return startProc(s, h, r, l.Ends[0]), nil
}

func (s *site) jobOf(r wire.WorldRank) *wireup.Job {
	j := s.job
	x := &wireup.Job{
		Name: "sim", Rank: r, Procs: s.table,
		DataLen: j.DataLen, TagUB: int32(j.TagUB), XSize: j.XSize, MaxLinear: j.MaxLinear,
		AckMark: j.AckMark, HiWater: j.HiWater, Spin: "0", Survive: s.w.cfg.Survive,
	}
	var cards []*dynamic.BusinessCard
	for _, other := range s.w.sites {
		cards = append(cards, cardOf(other))
	}
	how := route.PlanCollectives(cards, func(i int) string { return fmt.Sprint("client ", i) })
	mustPlan(s, &how)
	x.Direct, x.DirectLong = int32(how.Direct), int64(how.DirectLong)
	if s.w.cfg.Worlds != nil && j.AllOwn {
		x.World, x.Card = s.w.describe(), string(worldCard(s.hosts[j.Procs.At(r).Host-j.Clients[s.rank].FirstHost]))
	}
	if len(s.parts) > 0 {
		p, command := s.parts.procOf(int(r - j.Clients[s.rank].FirstProc))
		x.Parent, x.AppNum = p.of.port, command
	}
	return x
}

func (s *site) noticed(h *host, ev agent.Event) {
	switch ev.Kind {
	case agent.HostDied:
		h.survival.hostDied(ev.Peer.Host, ending.ChannelLost(fmt.Sprintf("host %d", ev.Peer.Host), ev.Err))
	case agent.RanksLost:
		h.survival.lose(ev.Lost)
	case agent.ProcLost:
		s.fail(ending.NodeFailed(fmt.Errorf("rank %d: its agent lost it: %w", ev.Peer.Rank, ev.Err)))
	case agent.HostWanted:
		s.w.k.After(0, func() { h.want(ev.Peer.Host) })
	case agent.Finished:
		h.over = true
		s.finish()
	default:
	}
}
