package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/site"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/transports"
)

// prompt is a link that can be had to acknowledge at once, as socket.Link can.
type prompt interface{ AckAtOnce() }

// channel is a channel that resumes.
type channel struct {
	*packetswitch.Channel
	from atomic.Pointer[dial.Origin] // of the connection, or of the last one
}

// take is given a further connection.
func (c *channel) take(l link.Link) {
	from := dial.OriginOf(l)
	c.from.Store(&from)
	c.Take(l)
}

// attachChannel gives a switch its channel to a host.
func (n *node) attachChannel(h *ownHost, peer wire.HostRank, l link.Link) (err error) {
	if !n.routes.ChannelResumable(h.Rank, peer) {
		if x, ok := l.(prompt); ok && !n.job.Clients[n.job.Hosts[peer].Client].Own {
			x.AckAtOnce() // LAM/MPI writes packets in pieces, with Nagle's algorithm
		}
		return h.loop.AttachHost(l, peer)
	}
	token := n.direct.channels.of[hostPair{h.Rank, peer}]
	x, from := &channel{}, dial.OriginOf(l)
	x.from.Store(&from)
	c := packetswitch.ChannelConfig{Host: peer, Session: resume.Session(token.ChannelSession()), Window: resumable.Window, Limit: routes.Resume(n.opt.Job)}
	if h.Rank > peer { // who dials in the dance
		c.Again = func(why error) { n.redial(h, peer, why, x) }
	}
	if x.Channel, err = h.loop.AttachChannel(l, c); err != nil {
		return err
	}
	h.resumable = append(h.resumable, x)
	return nil
}

// keepsListening tells whether a host is dialled again for a resumable channel,
// and has that heard.
func (n *node) keepsListening(h *ownHost, channels map[wire.HostRank]link.Link) bool {
	for peer := range channels {
		if peer > h.Rank && n.routes.ChannelResumable(h.Rank, peer) {
			n.direct.wg.Go(func() { n.direct.serve(n.site.ChannelListener(h.Host)) })
			return true
		}
	}
	return false
}

// redial makes a further connection for a channel, in the background.
func (n *node) redial(h *ownHost, peer wire.HostRank, why error, c *channel) {
	d := n.direct
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	n.log.Warn("a channel is lost and dialled again", "from", h.Rank, "to", n.routes.HostName(peer), "reason", why)
	d.wg.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, routes.Resume(n.opt.Job))
		defer cancel()
		began := time.Now()
		l, reason := d.dialChannel(ctx, h, peer)
		switch {
		case l != nil:
			n.log.Info("a channel is resumed", "from", h.Rank, "to", n.routes.HostName(peer), "after", time.Since(began).Round(time.Millisecond))
			c.take(l)
		case d.ctx.Err() == nil:
			c.Lose(reason)
		}
	})
}

// dialHost makes a connection for a channel by a way.
func (d *directLinks) dialHost(ctx context.Context, h *ownHost, peer wire.HostRank, w routes.Way) (link.Link, error) {
	token, ok := d.channels.of[hostPair{h.Rank, peer}]
	if !ok {
		return nil, fmt.Errorf("%s and this site have no secret to prove a channel with", d.n.routes.HostName(peer))
	}
	hello := dynamic.Hello{
		Src: wire.WorldRank(h.Rank), Dst: wire.WorldRank(peer),
		Session: token.ChannelSession(), Again: true, Hosts: true,
	}
	t := transports.Transport(w.T)
	if r := d.n.routes.FirstOf(peer); r >= 0 && !w.Plain {
		t = d.n.routes.Pinned(w.T, r)
	}
	return dial.Greeted(ctx, token, t, &hello, w)
}

// dialChannel tries until it succeeds, ctx ends, or the peer has no such channel any more.
func (d *directLinks) dialChannel(ctx context.Context, h *ownHost, peer wire.HostRank) (l link.Link, reason string) {
	ways, must := d.n.routes.ChannelWays(h.Rank, h.Config.Address.String(), peer)
	if !must {
		ways = append(ways, d.n.routes.PlainWay(h.Config.Address.String(), peer))
	}
	s := dial.Search{
		Search: dynamic.ResumeSearch(len(ways), routes.Resume(d.n.opt.Job)), Ways: ways,
		Dial: func(ctx context.Context, w routes.Way, _ dynamic.SearchStep) (link.Link, error) {
			return d.dialHost(ctx, h, peer, w)
		},
	}
	s.Rests = func() {
		d.n.log.Debug("cannot resume a channel yet", "to", d.n.routes.HostName(peer), "reasons", s.Reasons())
	}
	l, w, last := s.Run(ctx)
	switch {
	case l != nil:
		d.n.fallBacks.Warn("channel", d.n.job.Hosts[peer].Client, w, &s)
		return l, ""
	case last.Verdict != dynamic.Accepted:
		return nil, fmt.Sprintf("%s says: %v", d.n.routes.HostName(peer), last.Verdict)
	}
	return nil, fmt.Sprintf("%s was dialled %d times within %v, at last: %s", d.n.routes.HostName(peer), s.Rounds(), routes.Resume(d.n.opt.Job), s.Reasons())
}

// acceptChannel takes a connection of a channel, the first or a further one.
func (d *directLinks) acceptChannel(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, at *site.Listener) error {
	take, verdict := d.judgeChannel(ctx, l, hello, at)
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
		return err
	}
	if !take(l) {
		return context.Cause(d.ctx)
	}
	return nil
}

// judgeChannel decides about a connection between hosts, and gives who takes it.
func (d *directLinks) judgeChannel(ctx context.Context, l link.Link, hello dynamic.Hello, at *site.Listener) (take func(link.Link) bool, v dynamic.Verdict) {
	if v = d.judgeEnds(l, hello, at); v != dynamic.Accepted {
		return nil, v
	}
	x := hostPair{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)}
	if dance := d.awaitDance(ctx, d.n.hosts[at.Host.Index]); dance != nil {
		return func(l link.Link) bool { return dance.join(l, x.peer) }, dynamic.Accepted
	}
	if !d.awaitReady(ctx) {
		return nil, dynamic.Leaving
	}
	if c := d.n.hosts[at.Host.Index].channelFrom(x.peer); c != nil {
		return func(l link.Link) bool { c.take(l); return true }, dynamic.Accepted
	}
	return nil, dynamic.UnknownLink
}

// awaitDance gives the dance that makes a host's channels, and waits for it where the
// dialler was faster than we are; nil when it is over, or ctx.
func (d *directLinks) awaitDance(ctx context.Context, h *ownHost) *dancer {
	select {
	case <-h.danced:
	case <-d.n.ready: // a host that is alone does not dance
	case <-ctx.Done():
	}
	return h.dancing.Load()
}

// judgeEnds decides whether a connection between hosts may be, whatever it is for.
// What the dialler says it has proven, with the token of a channel to this host.
func (d *directLinks) judgeEnds(l link.Link, hello dynamic.Hello, at *site.Listener) dynamic.Verdict {
	x := hostPair{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)}
	token, ok := d.channels.of[x]
	switch {
	case x.local != at.Host.Rank || x.peer <= x.local || !ok:
		return dynamic.UnknownRank // hosts connect to those of lower rank
	case hello.Session != token.ChannelSession():
		return dynamic.UnknownLink
	case l.Handle() == link.NoHandle || !d.n.routes.AllowsChannel(x.peer, l, at.Transport, at.Plain):
		return dynamic.NotAllowed
	}
	return dynamic.Accepted
}

// channelFrom finds a channel that somebody else dials again.
func (h *ownHost) channelFrom(peer wire.HostRank) *channel {
	for _, c := range h.resumable {
		if c.Host() == peer && !c.Dials() {
			return c
		}
	}
	return nil
}
