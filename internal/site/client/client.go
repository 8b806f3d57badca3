// Package client makes a site a client of its job's server: the site joins the job, hears from the
// server that the job has failed, tells the other sites of its own failure, and leaves in the end.
package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/internal/site/server"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Settings are what a client needs of its node.
type Settings struct {
	Routes   *routes.Table // its World is set when the site has joined
	Site     *site.Site
	Procs    *procs.Set
	End      *lifetime.Lifetime // gets the server's message that the job is over
	Log      hclog.Logger
	Deadline time.Time       // until which the operator sees what the node waits for
	EndNow   <-chan struct{} // once closed, the server is not waited for
	Runs     <-chan struct{} // closed when the job runs at this site
	Cluster  *Cluster        // hosts of the site on other machines; nil: there are none
	Spawned  bool            // the job is a spawned world: its parents learn of its end in another way
	OnDemand agent.OnDemand  // which channels are made on demand
}

// Client is a site as a client of its job's server.
type Client struct {
	Settings
	Server *server.Server // embedded in this node; nil if it runs elsewhere
	Token  dynamic.Token  // that this site proposes for the job; no other site has it unless it was chosen

	id      *rendezvous.Identity       // see Identity
	session *rendezvous.Client         // our side of startup
	joined  bool                       // startup has begun
	at      string                     // the server's address; if there are several, known after startup
	lost    atomic.Pointer[serverLoss] // how the server was lost; nil: it is not
	left    chan struct{}              // closed when we have left the job, or given it up
	leaving sync.Once
}

// New makes a client that has not joined.
func New(s Settings) *Client { return &Client{Settings: s, left: make(chan struct{})} }

// Join performs startup for the site.
func (m *Client) Join(ctx context.Context) error {
	cfg, err := m.clientConfig()
	if err != nil {
		return err
	}
	if m.Cluster != nil {
		return m.joinWithOthers(ctx, cfg)
	}
	return m.joinServer(ctx, cfg)
}

func (m *Client) joinServer(ctx context.Context, cfg startup.ClientConfig) (err error) {
	if m.Routes.World, err = m.meet(ctx, cfg); err == nil {
		go m.hearServer()
	}
	return err
}

func (m *Client) meet(ctx context.Context, cfg startup.ClientConfig) (job *startup.Job, err error) {
	set, err := m.rendezvous()
	if err != nil {
		return nil, err
	}
	if m.Server == nil { // an embedded server reports itself whom it waits for
		stop := report.LogWait(m.Log, m.Deadline, func() string {
			return fmt.Sprintf("the server at %s and the other sites", strings.Join(m.servers(), " or "))
		})
		defer stop()
	}
	m.joined = true
	if set.Own != nil {
		m.id = set.Own.Identity
	}
	within, stop := m.untilOver(ctx)
	defer stop()
	m.session, job, m.at, err = rendezvous.JoinAny(within, set, m.servers(), cfg)
	if err == nil {
		job.Server = m.at
		return job, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if f := m.serverKnows(ctx, err); f != nil {
		return nil, f
	}
	return nil, m.serverSaid(err)
}

// serverKnows returns the reason why a job failed before this site had joined it. The server tells
// sites that have not joined only that the job has failed, but one of our own node can be asked.
func (m *Client) serverKnows(ctx context.Context, told error) *ending.Failure {
	if m.Server == nil || !errors.Is(told, startup.ErrFailed) {
		return nil
	}
	select {
	case <-m.Server.Done():
		return m.Server.Failure()
	case <-ctx.Done():
	case <-time.After(2 * time.Second): // the server may have refused this site alone
	}
	return nil
}

// untilOver returns a context that ends with ctx, and whose cause is the failure to tell other
// sites.
func (m *Client) untilOver(ctx context.Context) (_ context.Context, stop func()) {
	within, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		if f := lifetime.FailureOf(ctx); f != nil {
			cancel(f)
		} else {
			cancel(lifetime.Interrupted(m.Routes.Site.Name, context.Cause(ctx)))
		}
	})
	return within, func() { release(); cancel(nil) }
}

// Renew makes the connection to the server again with the present certificates, if the job runs. It
// returns false if the connection stays as it is.
func (m *Client) Renew() bool {
	select {
	case <-m.Runs:
		return m.session == nil || m.session.Renew()
	default:
		return true // the connection is made now, or soon
	}
}

// Identity returns the site's certificate at its server, once it has joined; nil if it has none.
func (m *Client) Identity() *rendezvous.Identity { return m.id }

// servers are the addresses at one of which the sites meet.
func (m *Client) servers() (all []string) {
	if m.Server != nil {
		return []string{m.Server.Address().String()}
	}
	for _, x := range m.Routes.Site.Server.All() {
		all = append(all, x.Address.String())
	}
	return all
}

func (m *Client) rendezvous() (rendezvous.Settings, error) {
	own, err := server.OwnServerFor(m.Routes.Job, *m.Routes.Site, m.Server != nil, m.Log)
	return rendezvous.Settings{
		Own: own, Logger: m.Log.Named("startup"),
		Dial: (&net.Dialer{KeepAliveConfig: socket.KeepAlive(routes.SilenceLimit(m.Routes.Job))}).DialContext,
	}, err
}

// hearServer reports the server's word that the job is over. If the server is lost, or has lost
// another site, the job goes on once it runs.
func (m *Client) hearServer() {
	w := &ending.ServerWatch{Tie: m.tie()}
	lost, runs := m.session.Lost(), m.Runs
	for {
		var limit <-chan time.Time
		if at, waits := w.Deadline(); waits {
			limit = time.After(time.Until(at))
		}
		select {
		case <-lost:
			lost = nil
			at := time.Now()
			if err := m.session.Err(); w.Lost(at, err, false) {
				m.lost.Store(&serverLoss{at, m.serverSaid(err).Text})
			}
		case err := <-m.session.LostClients():
			w.Lost(time.Now(), err, true)
		case <-runs:
			runs = nil
			w.Runs(time.Now())
		case <-limit:
			w.Tick(time.Now())
		case <-m.left:
			return
		}
		for x, ok := w.Next(); ok; x, ok = w.Next() {
			if m.decided(x); !x.GoesOn || !x.Site {
				return
			}
		}
	}
}

func (m *Client) decided(x ending.ServerStep) {
	switch {
	case !x.GoesOn:
		m.End.Fail(m.serverSaid(x.Err))
	case x.Site:
		m.Log.Warn("the job's server has lost another site, and the job goes on: if that site is dead its channels show it", "reason", withSites(m, causeOf(x.Err)))
	default:
		m.Log.Warn("the job's server is lost, and the job goes on without it", "server", cmp.Or(m.at, m.servers()[0]), "reason", causeOf(x.Err))
		m.Log.Info("without its server nobody can publish or look up names there; sites tell each other by their channels if one fails")
	}
}

// withSites replaces clients by names of sites in what the server said.
func withSites(m *Client, said string) string { return ending.WithNames(said, m.Routes.ClientName) }

// causeOf is why the server was lost, without what startup adds for a job that ends because of
// that.
func causeOf(err error) string {
	if startup.EndedByLostClient(err) {
		_, said, _ := strings.Cut(err.Error(), startup.ErrFailed.Error()+": ")
		return said
	}
	_, rest, lost := strings.Cut(err.Error(), startup.ErrLost.Error())
	if _, cause, ok := strings.Cut(rest, ": "); ok {
		return cause
	}
	if lost {
		return "it closed the connection"
	}
	return err.Error()
}

type serverLoss struct {
	at  time.Time
	why string
}

// Describe adds the job's server to d, once the site has joined.
func (m *Client) Describe(d *links.Node) {
	if m.session == nil {
		return // only the head is connected with the server
	}
	s := m.Routes.Site.Server
	d.Server = &links.JobServer{Address: cmp.Or(m.at, m.servers()[0]), Embedded: m.Server != nil, Ours: s.Ours && m.Server == nil}
	for _, x := range s.All() {
		if a := x.Address.String(); len(s.Standby) > 0 && a != d.Server.Address {
			d.Server.Others = append(d.Server.Others, a)
		}
	}
	if l := m.lost.Load(); l != nil {
		d.Server.Lost, d.Server.Why = l.at, l.why
	} else {
		d.Server.DisconnectedSince = m.session.DisconnectedSince()
	}
}

// tie is what ties the site to the server after startup.
func (m *Client) tie() ending.ServerTie {
	return ending.ServerTie{
		InJob: m.Server != nil || m.Routes.Site.Server.Ours, Survives: m.Routes.Job.Survive, Dialect: Dialect(*m.Routes.Site),
		NoChannels: m.OnDemand == agent.Always, FailuresReported: startup.AllListFailVersion(m.Routes.World),
	}
}

func (m *Client) clientConfig() (startup.ClientConfig, error) {
	site := *m.Routes.Site
	p := site.Protocol
	c := startup.ClientConfig{
		Rank: wire.ClientRank(site.Client), Auth: server.AuthOf(site.Auth),
		Params: startup.Params{
			DataLen: p.DataLen, TagUB: wire.Tag(p.TagUB), XSize: p.XSize, MaxLinear: p.MaxLinear,
			AckMark: p.AckMark, HiWater: p.HiWater,
		},
		Limit: m.Routes.Job.Limits.Start,
	}
	if err := announce(&c, site, m.Routes.Job.Survive); err != nil {
		return c, err
	}
	_, _ = rand.Read(c.Token[:]) // never fails
	m.Token = c.Token
	for _, h := range m.Site.Hosts {
		port, err := h.Port()
		if err != nil {
			return c, err
		}
		id := wire.HostIDFrom(h.Config.Address, hostIDForm(site))
		hc := startup.HostConfig{Address: id, Port: port}
		for _, p := range m.Procs.OfHost(h.Index) {
			pid := p.Identity()
			if c.Dialect == wire.Draft { // the draft has 32 bits for it
				pid = int64(p.PID())
			}
			hc.Procs = append(hc.Procs, startup.ProcConfig{ID: wire.Proc{Host: id, PID: pid}, Card: h.Card})
		}
		c.Hosts = append(c.Hosts, hc)
	}
	return c, nil
}

// Resign reports to the other sites that the job has failed, unless the failure came from them.
func (m *Client) Resign(f *ending.Failure) {
	m.leaving.Do(func() { close(m.left) })
	if m.session != nil {
		_ = m.session.Fail(f) // the session reports f
	}
}

// Abandon leaves the job without a message, as the others continue without this site.
func (m *Client) Abandon() {
	m.leaving.Do(func() { close(m.left) })
	if m.session != nil {
		m.session.Abandon()
	}
}

// Leave ends this site's part of a job that went well: once all hosts of the site have finished it
// calls last. If the server is in this node, it then waits for the end of the whole job.
func (m *Client) Leave(ctx context.Context, last func(context.Context) error) error {
	if m.Cluster != nil {
		if err := m.Cluster.finish(ctx); err != nil {
			return err
		}
	}
	if err := last(ctx); err != nil {
		return err
	}
	m.leaving.Do(func() { close(m.left) })
	if m.session == nil {
		return nil // the head does the rest
	}
	if err := m.session.Finish(); err != nil && !m.tie().Outlives(err) {
		return m.serverSaid(err)
	}
	if m.Server == nil {
		return nil
	}
	select {
	case <-m.Server.Done():
		// A job that continues without lost sites does not end by the loss of the last one that had
		// not left.
		if f := m.Server.Failure(); f != nil && !ending.OutlivesOwnServer(m.Routes.Job.Survive && !m.Spawned, f) {
			return f
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Client) serverSaid(err error) *ending.Failure {
	f := ending.ServerFailure(err, m.session != nil, m.Routes.ClientName)
	if !f.Remote {
		f.Text = fmt.Sprintf("site %s: %s", m.Routes.Site.Name, f.Text)
	}
	if errors.Is(err, startup.ErrLost) && m.Server == nil {
		f.Text += fmt.Sprintf("; the server is at %s: see on that machine whether it was killed, the machine was restarted or its network is down",
			cmp.Or(m.at, strings.Join(m.servers(), " or ")))
	}
	return f
}
