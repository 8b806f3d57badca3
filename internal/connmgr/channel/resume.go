package channel

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

type prompt interface{ AckAtOnce() }

type channel struct {
	*packetswitch.Channel
	from   atomic.Pointer[dial.Origin] // of the connection, or of the last one
	resent *socket.Retransmits         // of Channels
}

func (c *channel) take(l link.Link) {
	from := dial.OriginOf(l)
	c.resent.Count(l, from.Transport)
	c.from.Store(&from)
	c.SetLink(l)
}

// Attach passes the switch of one of the site's hosts its channel to another host.
func (c *Channels) Attach(host int, to *packetswitch.Switch, peer wire.HostRank, l link.Link) (err error) {
	h := c.ends[host]
	c.mu.Lock() // what comes for a channel that resumes finds it
	defer c.mu.Unlock()
	c.resent.Count(l, dial.OriginOf(l).Transport)
	compressed, err := routes.CompressChannel(c.Routes, h.Rank, peer)
	if err != nil {
		return err
	}
	session, resumes, dials := c.machine.AddChannel(h.Rank, peer)
	if !resumes {
		if x, ok := l.(prompt); ok && !c.Routes.World.Clients[c.Routes.World.Hosts[peer].Client].Own {
			x.AckAtOnce() // LAM/MPI writes packets in pieces, with Nagle's algorithm
		}
		return to.AttachHost(l, peer, compressed)
	}
	x, from := &channel{resent: &c.resent}, dial.OriginOf(l)
	x.from.Store(&from)
	s := packetswitch.ChannelConfig{
		Host: peer, Session: resume.ResumableID(session), Window: resumable.Window,
		Limit: routes.CurrentResumeLimit(c.Routes), FirstLimit: time.Until(c.Deadline), Compress: compressed,
	}
	if dials {
		s.Redial = func(why error, limit time.Duration) { c.redial(h, peer, why, limit, x) }
	}
	if x.Channel, err = to.AttachChannel(l, s); err != nil {
		return err
	}
	h.resumable = append(h.resumable, x)
	return nil
}

// redial makes a further connection for a channel within a limit, in the background.
func (c *Channels) redial(h *end, peer wire.HostRank, why error, limit time.Duration, x *channel) {
	if c.Tasks.Closed() {
		return
	}
	c.Log.Warn("a channel is lost and dialled again", "from", h.Rank, "to", c.Routes.HostName(peer), "reason", why)
	c.Tasks.Go(func() {
		ctx, cancel := context.WithTimeout(c.Tasks, limit)
		defer cancel()
		began := time.Now()
		l, reason := c.dialChannel(ctx, h.Host, peer, limit)
		switch {
		case l != nil:
			c.Log.Info("a channel is resumed", "from", h.Rank, "to", c.Routes.HostName(peer), "after", time.Since(began).Round(time.Millisecond))
			x.take(l)
		case c.Tasks.Err() == nil:
			x.Lose(reason)
		}
	})
}

// dialHost makes a connection for a channel; limit is how long it may take until there is one
// that is greeted.
func (c *Channels) dialHost(ctx context.Context, h *site.Host, peer wire.HostRank, w routes.Candidate, limit time.Duration, connected func()) (link.Link, error) {
	var hello dynamic.Hello
	var token dynamic.Token
	var ok bool
	c.with(func(m *agent.Channels) { hello, token, ok = m.Hello(h.Rank, peer) })
	if !ok {
		return nil, fmt.Errorf("%s and this site have no secret to prove a channel with", c.Routes.HostName(peer))
	}
	t := transports.Transport(w.Transport)
	if r := c.Routes.FirstRankOf(peer); r >= 0 && !w.Plain {
		t = c.Routes.Pinned(w.Transport, r)
	}
	return dial.DialAndGreet(ctx, token, noting{dial.WithLimit(t, limit), connected}, &hello, w)
}

// noting is a transport that calls connected, if that is not nil, for each link that it makes, before
// that is greeted.
type noting struct {
	transports.Transport
	connected func()
}

// Dial dials by the transport.
func (n noting) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	l, err := n.Transport.Dial(ctx, to)
	if err == nil && n.connected != nil {
		n.connected()
	}
	return l, err
}

// dialChannel tries until it succeeds, ctx ends, or the peer has no such channel any more.
func (c *Channels) dialChannel(ctx context.Context, h *site.Host, peer wire.HostRank, limit time.Duration) (l link.Link, reason string) {
	candidates, must := c.Routes.ChannelCandidates(h.Rank, h.Config.Address.String(), peer)
	if !must {
		candidates = append(candidates, c.Routes.PlainCandidate(h.Config.Address.String(), peer))
	}
	s := dial.Dialing{
		DialPlan: dynamic.ResumePlan(len(candidates), limit), Candidates: candidates,
		Dial: func(ctx context.Context, w routes.Candidate, _ dynamic.DialStep) (link.Link, error) {
			return c.dialHost(ctx, h, peer, w, dynamic.DialLimit, nil)
		},
	}
	s.RoundFailed = func() {
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
	return nil, fmt.Sprintf("%s was dialled %d times within %v, at last: %s", c.Routes.HostName(peer), s.Rounds(), limit.Round(100*time.Millisecond), s.Reasons())
}

// Accept accepts a connection of a channel, the first or a further one.
func (c *Channels) Accept(ctx context.Context, a *accept.Arrival) error {
	take, verdict := c.judge(ctx, a.Link, a.Hello, a.At)
	if take == nil && verdict == dynamic.Accepted {
		return c.acceptHost(ctx, c.ends[a.At.Host.Index], a)
	}
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	if !take(a.Link) {
		return errors.New("all channels are made")
	}
	return nil
}

// judge decides about a connection between hosts, and returns who takes it: nobody if it is a
// channel that was made on demand. A connection that comes before its host makes channels waits
// until it does, since the other node was faster.
func (c *Channels) judge(ctx context.Context, l link.Link, hello dynamic.Hello, at *site.Listener) (take func(link.Link) bool, v dynamic.Verdict) {
	if v = c.admits(l, hello, at); v != dynamic.Accepted {
		return nil, v
	}
	h, from := c.ends[at.Host.Index], wire.HostRank(hello.Src)
	for {
		var target agent.ArrivalTarget
		var changed chan struct{}
		c.with(func(m *agent.Channels) {
			select {
			case <-c.Ready:
				m.Ready()
			default:
			}
			target, v = m.Arrive(hello)
			changed = c.changed
		})
		switch target {
		case agent.ToDance:
			dance := h.dancing.Load()
			return func(l link.Link) bool { return dance.join(l, from) }, v
		case agent.ToChannel:
			k := c.channelTo(h, from)
			return func(l link.Link) bool { k.take(l); return true }, v
		case agent.Nowhere, agent.ToHost:
			return nil, v
		case agent.NotReady:
		}
		select {
		case <-changed:
		case <-c.Ready:
		case <-ctx.Done():
			return nil, dynamic.Leaving
		}
	}
}

func (c *Channels) admits(l link.Link, hello dynamic.Hello, at *site.Listener) (v dynamic.Verdict) {
	allowed := l.Handle() != link.NoHandle && c.Routes.AllowsChannel(wire.HostRank(hello.Src), l, at.Transport, at.Plain)
	c.with(func(m *agent.Channels) { v = m.Admits(at.Host.Rank, hello, allowed) })
	return v
}

func (c *Channels) channelTo(h *end, peer wire.HostRank) *channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range h.resumable {
		if x.Host() == peer {
			return x
		}
	}
	return nil
}

// Retransmits returns the number of segments that TCP has sent again on channels, by transport.
func (c *Channels) Retransmits() map[string]uint64 { return c.resent.Totals() }

// OriginOf returns the origin of the connection of a channel that resumes.
func (c *Channels) OriginOf(host int, x *packetswitch.Channel) dial.Origin {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.ends[host].resumable {
		if k.Channel == x {
			return *k.from.Load()
		}
	}
	return dial.Origin{}
}
