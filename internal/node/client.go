package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/node/report"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/server"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/transports/socket"
)

// join takes the site through startup.
func (n *node) join(ctx context.Context) error {
	cfg, err := n.clientConfig()
	if err != nil {
		return err
	}
	set, err := n.rendezvous()
	if err != nil {
		return err
	}
	if n.server == nil { // which reports by itself whom it waits for
		stop := report.While(n.log, n.deadline, func() string { return fmt.Sprintf("the server at %s and the other sites", set.Server) })
		defer stop()
	}
	n.joined = true
	within, stop := n.untilOver(ctx)
	defer stop()
	n.session, n.job, err = rendezvous.Join(within, set, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if f := n.serverKnows(ctx, err); f != nil {
			return f
		}
		return n.serverSaid(err)
	}
	n.routes.World = n.job
	go n.hearServer()
	return nil
}

// serverKnows gives the reason of a job that failed before this site had joined it, if
// the server is ours: to who has not joined it says that much only.
func (n *node) serverKnows(ctx context.Context, told error) *ending.Failure {
	if n.server == nil || !errors.Is(told, startup.ErrFailed) {
		return nil
	}
	select {
	case <-n.server.Done():
		return n.server.Failure()
	case <-ctx.Done():
	case <-time.After(2 * time.Second): // it may have turned away us alone
	}
	return nil
}

// untilOver gives a context that ends with ctx and says why as other sites are to be told.
func (n *node) untilOver(ctx context.Context) (_ context.Context, stop func()) {
	within, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		if f := ending.Of(ctx); f != nil {
			cancel(f)
		} else {
			cancel(n.interrupted(context.Cause(ctx)))
		}
	})
	return within, func() { release(); cancel(nil) }
}

// rendezvous says how to reach the server.
func (n *node) rendezvous() (rendezvous.Settings, error) {
	address := n.opt.Site.Server.Address
	if n.server != nil {
		address = n.server.Address()
	}
	own, err := server.OwnFor(n.opt.Job, n.opt.Site, n.server != nil, n.log)
	return rendezvous.Settings{
		Server: address.String(), Own: own, Logger: n.log.Named("startup"),
		Dial: (&net.Dialer{KeepAliveConfig: socket.KeepAlive(routes.Silence(n.opt.Job))}).DialContext,
	}, err
}

// hearServer reports the server's word that the job is over.
func (n *node) hearServer() {
	select {
	case <-n.session.Lost():
		n.end.Fail(n.serverSaid(n.session.Err()))
	case <-n.left:
	}
}

func (n *node) clientConfig() (startup.ClientConfig, error) {
	site := n.opt.Site
	p := site.Protocol
	c := startup.ClientConfig{
		Rank: wire.ClientRank(site.Client), Auth: server.AuthOf(site.Auth),
		Params: startup.Params{
			DataLen: p.DataLen, TagUB: wire.Tag(p.TagUB), XSize: p.XSize, MaxLinear: p.MaxLinear,
			AckMark: p.AckMark, HiWater: p.HiWater,
		},
		Limit: n.opt.Job.Limits.Start,
	}
	if err := announce(&c, site); err != nil {
		return c, err
	}
	_, _ = rand.Read(c.Token[:]) // never fails
	n.token = c.Token
	for _, h := range n.hosts {
		port, err := h.Port()
		if err != nil {
			return c, err
		}
		id := wire.HostIDFrom(h.Config.Address, hostIDForm(site))
		hc := startup.HostConfig{Address: id, Port: port}
		for _, p := range n.procs.OfHost(h.Index) {
			hc.Procs = append(hc.Procs, startup.ProcConfig{ID: wire.Proc{Host: id, PID: int64(p.PID())}, Card: h.Card})
		}
		c.Hosts = append(c.Hosts, hc)
	}
	return c, nil
}

// resign tells the other sites why the job ends, if it is not from them that we
// know it.
func (n *node) resign(f *ending.Failure) {
	n.leaving.Do(func() { close(n.left) })
	if n.session != nil {
		_ = n.session.Fail(f) // which reports f
	}
}

// leave ends our share of a job that went well, and waits for the server if it
// is ours.
func (n *node) leave(ctx context.Context) error {
	n.leaving.Do(func() { close(n.left) })
	if err := n.session.Finish(); err != nil {
		return n.serverSaid(err)
	}
	if n.server == nil {
		return nil
	}
	select {
	case <-n.server.Done():
		if f := n.server.Failure(); f != nil {
			return f
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serverSaid makes a failure of what ended startup, or the connection to the
// server.
func (n *node) serverSaid(err error) *ending.Failure {
	f := ending.ByServer(n.opt.Job, err)
	if !f.Remote {
		f.Text = fmt.Sprintf("site %s: %s", n.opt.Site.Name, f.Text)
	}
	if errors.Is(err, startup.ErrLost) && n.session != nil {
		f.Weight = blame.Lost // whoever broke it may have told why elsewhere
	}
	return f
}
