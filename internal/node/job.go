package node

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/operator/inspect"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

type ownHost struct {
	*site.Host
	sw      *packetswitch.Switch // once its channels are there
	running bool                 // loop.Run was called
	noBoard string               // why its procs have no board; empty: they have one

	finished chan struct{} // closed when all is switched and every channel has ended
}

// agentBuffer is the size of each buffer between a proc and its agent, in bytes.
const agentBuffer = 1 << 20

// place sets the ranks of hosts and procs and reads the business cards, once startup is over.
func (n *node) place() error {
	for i, h := range n.hosts {
		h.Rank = n.job.HostOf(n.job.Self, n.routes.HostsBefore+i)
	}
	if err := n.survival.begin(); err != nil {
		return err
	}
	n.procs.SetRanks()
	if err := shareJob(n); err != nil {
		return err
	}
	cards, rank, err := routes.ReadCards(&n.job.Procs)
	if err != nil {
		return fmt.Errorf("business card of rank %d, %s: %w", rank, n.routes.ClientName(n.job.Procs.At(rank).Client), err)
	}
	n.routes.Cards = cards
	if n.world, err = n.job.Describe(); err != nil {
		n.log.Debug("the job cannot meet other worlds", "reason", err)
		n.world = nil
	}
	return nil
}

// shareJob puts what is known of the job's procs into memory that the node's own procs get as well,
// and from then on reads it there.
func shareJob(n *node) (err error) {
	if n.table, err = wireup.ShareProcs(&n.job.Procs); err != nil {
		return err
	}
	if n.opt.spawned != nil {
		return nil // a process that has several worlds, one after the other, must not keep the memory mapped
	}
	n.job.Procs, err = wireup.MapProcs(n.table)
	return err
}

func (n *node) startSwitches(channels []map[wire.HostRank]link.Link) error {
	defer n.table.Close()
	for i, h := range n.hosts {
		a, err := agent.New(n.channels.AgentConfig(h.Index, n.survival.on, client.Dialect(n.opt.Site)))
		if err != nil {
			return err
		}
		spin, err := polling.NewSpinner(site.EncodeWait(n.opt.Site.Wait))
		if err != nil {
			return err
		}
		c := packetswitch.Config{Agent: a, Spin: spin, Notify: n.noticed(h), Answer: answers(n)}
		if client.Dialect(n.opt.Site) == wire.Draft {
			c.Patience = n.opt.Job.Limits.Start
		}
		if h.sw, err = packetswitch.New(c); err != nil {
			return err
		}
		n.channels.SetSwitch(i, h.sw)
		for peer, l := range channels[i] {
			if err := n.channels.Attach(i, h.sw, peer, l); err != nil {
				return fmt.Errorf("channel to %s: %w", n.routes.HostName(peer), err)
			}
		}
		if err := n.welcomeAll(h); err != nil {
			return err
		}
	}
	for _, h := range n.hosts {
		h.running = true
		go h.sw.Run()
	}
	return nil
}

// stopSwitches stops the packet switches. Channels that have not ended are dropped, which tells
// hosts of other MPIs that the job has failed.
func (n *node) stopSwitches() {
	for _, h := range n.hosts {
		if h.running {
			h.sw.Stop()
		} else if h.sw != nil {
			h.sw.Close()
		}
	}
}

// tellHosts tells the hosts that have channels with those of this node why the job ends, if they are
// to be told.
func (n *node) tellHosts(f *ending.Failure, tell bool) {
	if !tell {
		return
	}
	limit := time.After(agent.TellTime)
	var all []chan struct{}
	for _, h := range n.hosts {
		told := make(chan struct{})
		if h.running {
			h.sw.Fail(f.Text, func() { close(told) })
			all = append(all, told)
		}
	}
	for _, told := range all {
		select {
		case <-told:
		case <-limit:
			return
		}
	}
}

func answers(n *node) func(wire.HostRank, []byte, func([]byte)) {
	return func(from wire.HostRank, question []byte, reply func([]byte)) {
		over, ok := inspect.AdmitQuestion(n.control, n.job.Hosts[from].Client)
		if !ok || !n.tasks.Go(func() { defer over(); reply(n.control.ServeChannel(n.tasks, from, question)) }) {
			over()
			reply(nil)
		}
	}
}

func (n *node) welcomeAll(h *ownHost) error {
	b, why := n.boardFor(h)
	if b != nil {
		defer b.Close()
	}
	h.noBoard = why
	all := n.procs.OfHost(h.Index)
	views := viewsFor(n, all)
	for _, p := range all {
		if err := n.welcome(h, p, views, b); err != nil {
			return fmt.Errorf("%v: %w", p.ID(), err)
		}
	}
	return nil
}

// welcome links a proc to its agent and sends it the job with the table of all procs, and its
// host's board if there is one.
func (n *node) welcome(h *ownHost, p *procs.Proc, views []wireup.View, b *wireup.Board) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("link to the agent: %w", err)
	}
	for _, fd := range fds {
		// The kernel may give less; that costs speed, nothing else.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, agentBuffer)
	}
	defer wireup.CloseAll(fds[1:])
	ours, err := socket.New(fds[0], nil)
	if err != nil {
		return err
	}
	if err := h.sw.AttachProc(ours, p.Rank()); err != nil {
		return errors.Join(err, ours.Close())
	}
	j := n.jobOf(p)
	j.Views = views
	job, err := j.Share()
	if err != nil {
		return err
	}
	defer job.Close()
	m := wireup.Message{Kind: wireup.KindWelcome, Version: wireup.Version, Board: b != nil}
	send := []int{fds[1], int(job.Fd()), int(n.table.Fd())}
	if b != nil {
		send = append(send, b.Descriptors()...)
	}
	defer n.survival.welcomed(p)
	if err := p.Welcome(m, send...); err != nil {
		n.log.Debug("cannot send the job to a proc", "proc", p.ID(), "error", err) // the proc has ended, which its watcher reports
	}
	return nil
}

func traceOf(pattern string, rank wire.WorldRank) string {
	return config.TraceFile(pattern, int(rank))
}

func (n *node) jobOf(p *procs.Proc) *wireup.Job {
	rank := p.Rank()
	j := &wireup.Job{
		Name: n.name(), Rank: rank, AppNum: n.appNum(p), Parent: n.parent(),
		DataLen: n.job.DataLen, TagUB: int32(n.job.TagUB), XSize: n.job.XSize, MaxLinear: n.job.MaxLinear,
		AckMark: n.job.AckMark, HiWater: n.job.HiWater, Dialect: client.Dialect(n.opt.Site),
		Spin: site.EncodeWait(n.opt.Site.Wait), Progress: n.opt.Site.Progress,
		Native: routes.MayUseNative(n.routes), Lend: routes.MayLend(n.routes), Account: keepsAccounts(n), Survive: n.survival.on,
		Trace: traceOf(n.opt.Site.Log.Trace, rank),
	}
	how := routes.Collectives(n.routes)
	j.Direct, j.DirectLong = int32(how.Direct), int64(how.DirectLong)
	j.Timeline, j.TimelineEach = traceOf(n.opt.Site.Trace.Calls, rank), n.opt.Site.Trace.Short == config.ShortEach
	if n.world != nil && len(n.routes.Cards.At(rank).Addresses) > 0 { // otherwise it can meet no other world
		j.World, j.Card = n.world, string(n.job.Procs.At(rank).Card)
	}
	return j
}

func keepsAccounts(n *node) bool {
	return n.opt.Site.Metrics.Calls || n.opt.Job.Report.Path != ""
}

// viewsFor describes all procs of the job to those of one host, which see them alike: they have one
// business card. What is known of a proc is found out once for all that are in a run with it.
func viewsFor(n *node, locals []*procs.Proc) (views []wireup.View) {
	for x := range n.job.Procs.Runs() {
		views = wireup.AddView(views, x.First, procFor(n, locals[0].Rank(), locals, x.First, x.ProcInfo))
	}
	return views
}

// procFor describes one proc to those of one host, of which self is the first, except for its
// identity, its place and its card.
func procFor(n *node, self wire.WorldRank, locals []*procs.Proc, to wire.WorldRank, x startup.ProcInfo) wireup.Proc {
	if self == to && len(locals) > 1 {
		self = locals[1].Rank() // its path to itself is known without
	}
	p := wireup.Proc{
		Path: n.direct.Path(direct.Pair{Local: self, Peer: to}), Data: n.routes.Data(self, to),
		Foreign: routes.Foreign(n.routes, x.Client),
	}
	if site, foreign := n.routes.ForeignSite(x.Client); foreign {
		p.ReduceOnPointToPoint = site.Implementation.ReduceOnPointToPoint()
	}
	if card := n.routes.Cards.At(to); card != nil {
		p.Unexpected = card.Unexpected
	} else if x.Client == n.job.Self { // where another MPI is in the job there are no cards
		p.Unexpected = n.opt.Site.Protocol.Unexpected
	} else if n.job.Clients[n.job.Self].Lists(wire.AllowsVersion) && n.job.Clients[x.Client].Lists(wire.AllowsVersion) {
		p.Allows = true
	}
	return p
}

func (n *node) name() string {
	if s := n.opt.spawned; s != nil {
		return n.opt.root.opt.Job.Name() + "/" + s.World()
	}
	return n.opt.Job.Name()
}

// HandleMessage handles a message of a proc in MPI about links or other worlds. It returns false
// for others.
func (n *node) HandleMessage(p *procs.Proc, m wireup.Message) bool {
	switch {
	case n.meetings.HandleMessage(p, m), n.parents.HandleMessage(p, m):
	case m.Kind == wireup.KindOpen && m.Resumable != nil:
		n.direct.Reopen(p, m)
	case m.Kind == wireup.KindOpen:
		n.direct.Open(p, m.Peer)
	default:
		return false
	}
	return true
}

// LeftMPI is called when a proc is not in MPI any more.
func (n *node) LeftMPI(p *procs.Proc, inOrder bool) {
	n.meetings.ProcEnded(p)
	n.parents.ProcEnded(p)
	if inOrder {
		n.hosts[p.Host].sw.ProcDone(p.Rank())
	}
}

func (n *node) noticed(h *ownHost) func(agent.Event) {
	return func(ev agent.Event) {
		switch ev.Kind {
		case agent.HostDied:
			n.survival.hostDied(ev.Peer.Host, channelLost(n, ev.Peer.Host, ev.Err))
		case agent.RanksLost:
			n.survival.lose(ev.Lost)
		case agent.ProcLost:
			n.end.Fail(ending.NodeFailed(fmt.Errorf("%v: its agent lost it: %w", n.procs.OfRank(ev.Peer.Rank).ID(), ev.Err)))
		case agent.HostWanted:
			n.channels.Request(h.Index, ev.Peer.Host)
		case agent.Finished:
			close(h.finished)
		default:
			n.log.Debug("agent", "host", h.Rank, "event", ev.String())
		}
	}
}

// channelLost is the failure of a job whose channel to a host ended too early. The head of another
// site tells the server why its hosts end. If it does not, so that this failure is reported, the
// host or the head is lost.
func channelLost(n *node, h wire.HostRank, err error) *ending.Failure {
	f := ending.ChannelLost(n.routes.HostName(h), err)
	client := n.job.Hosts[h].Client
	if client == n.job.Self {
		f.Status = ending.StatusNode // the failure is not that of another site
		if f.Remote {
			f.Precedence = ending.Lost // the tree brings the same failure with the exit status
		}
		return f
	}
	if _, silent := errors.AsType[*link.SilentError](err); silent || !n.job.Clients[client].Own || f.Precedence != ending.Lost || errors.Is(err, agent.ErrUnreached) {
		return f
	}
	if head := n.job.Hosts[n.job.Clients[client].FirstHost].Address.Addr(); head != n.job.Hosts[h].Address.Addr() {
		f.Text += fmt.Sprintf("; the head of that site, %v, has not said why", head)
	}
	f.Text += ": see on that machine whether impi-node was killed, the machine was restarted or its network is down"
	return f
}
