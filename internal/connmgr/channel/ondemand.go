package channel

import (
	"context"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// SetSwitch sets the switch of a host, which does not run yet.
func (c *Channels) SetSwitch(host int, s *packetswitch.Switch) { c.ends[host].sw = s }

type making struct {
	*dial.Dialing
	agent.Reach
	c    *Channels
	h    *end
	peer wire.HostRank
}

// Request makes the channel from one of the site's hosts to another host, in the background. It
// does nothing if that is under way, or if the other host makes it.
func (c *Channels) Request(host int, peer wire.HostRank) {
	c.Tasks.Go(func() { c.make(c.ends[host], peer) })
}

func (c *Channels) make(h *end, peer wire.HostRank) {
	candidates, must := c.Routes.ChannelCandidates(h.Rank, h.Config.Address.String(), peer)
	if !must {
		candidates = append(candidates, c.Routes.PlainCandidate(h.Config.Address.String(), peer))
	}
	var m *dynamic.DialPlan
	limit := agent.OnDemandTime(time.Until(c.Deadline), routes.CurrentResumeLimit(c.Routes))
	c.with(func(x *agent.Channels) { m = x.Request(h.Rank, peer, len(candidates), limit) })
	if m == nil {
		return
	}
	client := c.Routes.World.Hosts[peer].Client
	x := &making{c: c, h: h, peer: peer, Reach: agent.Reach{
		Must: must, Own: client == c.Routes.World.Self, Listens: c.Routes.World.Listens(client), Began: time.Now(),
	}}
	x.Dialing = &dial.Dialing{
		DialPlan: m, Lock: &c.mu, Candidates: candidates,
		Dial: func(ctx context.Context, w routes.Candidate, step dynamic.DialStep) (link.Link, error) {
			return c.dialHost(ctx, h.Host, peer, w, x.OnDemandLimit(time.Now(), dial.Local(candidates[step.Candidate:])), nil)
		},
	}
	x.run()
}

func (x *making) run() {
	ctx, cancel := context.WithCancel(x.c.Tasks)
	defer cancel()
	given := false
	x.RoundFailed = func() {
		x.c.Log.Debug("cannot connect yet", "from", x.h.Rank, "to", x.c.Routes.HostName(x.peer), "reasons", x.Reasons())
		heard := x.OnDemand(time.Now(), x.FailedCandidates())
		if given = heard.Silent; heard.Warn {
			x.c.noAnswerYet(x.h, x.peer, x.Candidates, x.Errors(), fmt.Sprintf("the job ends after %v more", heard.Left))
		}
		if given || !x.wanted() {
			cancel()
		}
	}
	l, w, last := x.Run(ctx)
	switch {
	case l != nil:
		x.c.FallBacks.Warn("channel", x.c.Routes.World.Hosts[x.peer].Client, w, x.Dialing)
		x.c.begin(x.h, x.peer, l)
	case last.Action != dynamic.GiveUp:
	case ctx.Err() != nil && !given:
		x.c.with(func(m *agent.Channels) { m.Stop(x.h.Rank, x.peer) })
	case last.Verdict == dynamic.Leaving:
		x.h.sw.Post(func() { x.h.sw.Agent.NoChannel(x.peer, nil) })
	default:
		err := x.why(last)
		x.h.sw.Post(func() { x.h.sw.Agent.NoChannel(x.peer, err) })
	}
}

func (x *making) wanted() bool {
	yes := make(chan bool, 1)
	if !x.h.sw.Post(func() { yes <- x.h.sw.Agent.ChannelDialFailed(x.peer) }) {
		return false
	}
	select {
	case v := <-yes:
		return v
	case <-x.h.sw.Done():
		return false
	}
}

func (x *making) why(last dynamic.DialStep) error {
	err := x.Errors()
	client := x.c.Routes.World.Hosts[x.peer].Client
	switch {
	case last.Verdict != dynamic.Accepted:
		return fmt.Errorf("no channel from %v is possible: its node answers: %v", x.h.Config.Address, last.Verdict)
	case x.Must:
		_, says := x.c.Routes.ForbidsPlain(client)
		return fmt.Errorf("%s, and it cannot be reached so: %w%s", says, err, x.c.Routes.Remedy(client, err))
	}
	err = x.c.withRemedy(err, client, x.Candidates)
	return fmt.Errorf("from %v, within %v: %w", x.h.Config.Address, time.Since(x.Began).Round(time.Second), err)
}

func (c *Channels) begin(h *end, peer wire.HostRank, l link.Link) {
	from := dial.OriginOf(l)
	c.Log.Debug("channel", "from", h.Rank, "to", peer, "transport", from.Transport, "data_plane", from.Plane, "on_demand", true)
	ok := h.sw.Post(func() {
		if err := c.Attach(h.Index, h.sw, peer, l); err != nil {
			c.Log.Debug("cannot use a channel", "from", h.Rank, "to", peer, "reason", err)
			_ = l.Close()
			h.sw.Agent.NoChannel(peer, err)
		}
	})
	if !ok {
		_ = l.Close()
	}
}

// expects asks the agent whether it takes a channel that another host has made.
func (h *end) expects(peer wire.HostRank) bool {
	yes := make(chan bool, 1)
	if !h.sw.Post(func() { yes <- h.sw.Agent.ExpectHost(peer) }) {
		return false
	}
	select {
	case v := <-yes:
		return v
	case <-h.sw.Done():
		return false
	}
}

// acceptHost takes a connection that is the channel to the host that has made it.
func (c *Channels) acceptHost(ctx context.Context, h *end, a *accept.Arrival) error {
	peer, v := wire.HostRank(a.Hello.Src), dynamic.Accepted
	if !h.expects(peer) {
		v = dynamic.Leaving
	}
	err := a.Answer(ctx, v)
	if err == nil && v == dynamic.Accepted {
		c.begin(h, peer, a.Link)
		return nil
	}
	c.with(func(m *agent.Channels) { m.Drop(a.Hello) })
	if v == dynamic.Accepted {
		h.sw.Post(func() { h.sw.Agent.UnexpectHost(peer) })
	}
	return err
}
