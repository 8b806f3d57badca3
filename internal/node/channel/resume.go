package channel

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/accept"
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

// Attach gives the switch of one of the site's hosts its channel to another host.
func (c *Channels) Attach(host int, to *packetswitch.Switch, peer wire.HostRank, l link.Link) (err error) {
	h := c.ends[host]
	if !c.Routes.ChannelResumable(h.Rank, peer) {
		if x, ok := l.(prompt); ok && !c.Routes.World.Clients[c.Routes.World.Hosts[peer].Client].Own {
			x.AckAtOnce() // LAM/MPI writes packets in pieces, with Nagle's algorithm
		}
		return to.AttachHost(l, peer)
	}
	token := c.tokens.of[hostPair{h.Rank, peer}]
	x, from := &channel{}, dial.OriginOf(l)
	x.from.Store(&from)
	s := packetswitch.ChannelConfig{
		Host: peer, Session: resume.Session(token.ChannelSession()), Window: resumable.Window,
		Limit: routes.Resume(c.Routes.Job), First: time.Until(c.Deadline),
	}
	if h.Rank > peer { // who dials in the dance
		s.Again = func(why error) { c.redial(h, peer, why, x) }
	}
	if x.Channel, err = to.AttachChannel(l, s); err != nil {
		return err
	}
	h.resumable = append(h.resumable, x)
	return nil
}

// KeepsListening tells whether one of the site's hosts, which has these channels, is dialled again
// for a resumable one.
func (c *Channels) KeepsListening(host int, channels map[wire.HostRank]link.Link) bool {
	self := c.ends[host].Rank
	for peer := range channels {
		if peer > self && c.Routes.ChannelResumable(self, peer) {
			return true
		}
	}
	return false
}

// redial makes a further connection for a channel, in the background.
func (c *Channels) redial(h *end, peer wire.HostRank, why error, x *channel) {
	if c.Tasks.Closed() {
		return
	}
	c.Log.Warn("a channel is lost and dialled again", "from", h.Rank, "to", c.Routes.HostName(peer), "reason", why)
	c.Tasks.Go(func() {
		ctx, cancel := context.WithTimeout(c.Tasks, routes.Resume(c.Routes.Job))
		defer cancel()
		began := time.Now()
		l, reason := c.dialChannel(ctx, h.Host, peer)
		switch {
		case l != nil:
			c.Log.Info("a channel is resumed", "from", h.Rank, "to", c.Routes.HostName(peer), "after", time.Since(began).Round(time.Millisecond))
			x.take(l)
		case c.Tasks.Err() == nil:
			x.Lose(reason)
		}
	})
}

// dialHost makes a connection for a channel by a way.
func (c *Channels) dialHost(ctx context.Context, h *site.Host, peer wire.HostRank, w routes.Way) (link.Link, error) {
	token, ok := c.tokens.of[hostPair{h.Rank, peer}]
	if !ok {
		return nil, fmt.Errorf("%s and this site have no secret to prove a channel with", c.Routes.HostName(peer))
	}
	hello := dynamic.Hello{
		Src: wire.WorldRank(h.Rank), Dst: wire.WorldRank(peer),
		Session: token.ChannelSession(), Again: true, Hosts: true,
	}
	t := transports.Transport(w.T)
	if r := c.Routes.FirstOf(peer); r >= 0 && !w.Plain {
		t = c.Routes.Pinned(w.T, r)
	}
	return dial.Greeted(ctx, token, t, &hello, w)
}

// dialChannel tries until it succeeds, ctx ends, or the peer has no such channel any more.
func (c *Channels) dialChannel(ctx context.Context, h *site.Host, peer wire.HostRank) (l link.Link, reason string) {
	ways, must := c.Routes.ChannelWays(h.Rank, h.Config.Address.String(), peer)
	if !must {
		ways = append(ways, c.Routes.PlainWay(h.Config.Address.String(), peer))
	}
	s := dial.Search{
		Search: dynamic.ResumeSearch(len(ways), routes.Resume(c.Routes.Job)), Ways: ways,
		Dial: func(ctx context.Context, w routes.Way, _ dynamic.SearchStep) (link.Link, error) {
			return c.dialHost(ctx, h, peer, w)
		},
	}
	s.Rests = func() {
		c.Log.Debug("cannot resume a channel yet", "to", c.Routes.HostName(peer), "reasons", s.Reasons())
	}
	l, w, last := s.Run(ctx)
	switch {
	case l != nil:
		c.FallBacks.Warn("channel", c.Routes.World.Hosts[peer].Client, w, &s)
		return l, ""
	case last.Verdict != dynamic.Accepted:
		return nil, fmt.Sprintf("%s says: %v", c.Routes.HostName(peer), last.Verdict)
	}
	return nil, fmt.Sprintf("%s was dialled %d times within %v, at last: %s", c.Routes.HostName(peer), s.Rounds(), routes.Resume(c.Routes.Job), s.Reasons())
}

// Accept takes a connection of a channel, the first or a further one.
func (c *Channels) Accept(ctx context.Context, a *accept.Arrival) error {
	take, verdict := c.judgeChannel(ctx, a.Link, a.Hello, a.At)
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	if !take(a.Link) {
		return context.Cause(c.Tasks)
	}
	return nil
}

// judgeChannel decides about a connection between hosts, and gives who takes it.
func (c *Channels) judgeChannel(ctx context.Context, l link.Link, hello dynamic.Hello, at *site.Listener) (take func(link.Link) bool, v dynamic.Verdict) {
	if v = c.judgeEnds(l, hello, at); v != dynamic.Accepted {
		return nil, v
	}
	x := hostPair{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)}
	if dance := c.awaitDance(ctx, c.ends[at.Host.Index]); dance != nil {
		return func(l link.Link) bool { return dance.join(l, x.peer) }, dynamic.Accepted
	}
	select {
	case <-c.Ready:
	case <-ctx.Done():
		return nil, dynamic.Leaving
	}
	if k := c.ends[at.Host.Index].channelFrom(x.peer); k != nil {
		return func(l link.Link) bool { k.take(l); return true }, dynamic.Accepted
	}
	return nil, dynamic.UnknownLink
}

// awaitDance gives the dance that makes a host's channels, and waits for it where the
// dialler was faster than we are; nil when it is over, or ctx.
func (c *Channels) awaitDance(ctx context.Context, h *end) *dancer {
	select {
	case <-h.danced:
	case <-c.Ready: // a host that is alone does not dance
	case <-ctx.Done():
	}
	return h.dancing.Load()
}

// judgeEnds decides whether a connection between hosts may be, whatever it is for.
// What the dialler says it has proven, with the token of a channel to this host.
func (c *Channels) judgeEnds(l link.Link, hello dynamic.Hello, at *site.Listener) dynamic.Verdict {
	x := hostPair{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)}
	token, ok := c.tokens.of[x]
	switch {
	case x.local != at.Host.Rank || x.peer <= x.local || !ok:
		return dynamic.UnknownRank // hosts connect to those of lower rank
	case hello.Session != token.ChannelSession():
		return dynamic.UnknownLink
	case l.Handle() == link.NoHandle || !c.Routes.AllowsChannel(x.peer, l, at.Transport, at.Plain):
		return dynamic.NotAllowed
	}
	return dynamic.Accepted
}

// channelFrom finds a channel that somebody else dials again.
func (h *end) channelFrom(peer wire.HostRank) *channel {
	for _, c := range h.resumable {
		if c.Host() == peer && !c.Dials() {
			return c
		}
	}
	return nil
}

// OriginOf tells where the connection of a channel that resumes came from.
func (c *Channels) OriginOf(host int, x *packetswitch.Channel) dial.Origin {
	for _, k := range c.ends[host].resumable {
		if k.Channel == x {
			return *k.from.Load()
		}
	}
	return dial.Origin{}
}
