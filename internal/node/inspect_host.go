package node

import (
	"context"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/wireup"
)

// describe asks a host's switch, which answers between two packets.
func (h *ownHost) describe(ctx context.Context, n *node) (links.Host, []links.Channel) {
	d := links.Host{Rank: int(h.rank), Address: h.config.Address.String(), NoBoard: h.noBoard,
		Wait: links.Waiting{Setting: spinSetting(n.opt.Site.Wait)}}
	answer := make(chan switchState, 1)
	h.loop.post(func() { answer <- h.loop.state() })
	var s switchState
	select {
	case s = <-answer:
	case <-h.loop.done:
		return d, nil
	case <-ctx.Done():
		return d, nil
	}
	d.Wait.Budget, d.Wait.Crowded, d.Wait.Score, d.Wait.State = s.wait.Budget, s.wait.Crowded, s.wait.Score, s.wait.State
	var channels []links.Channel
	for _, c := range s.channels {
		c.From = int(h.rank)
		c.Address = n.job.Hosts[c.To].Address.Addr().String()
		channels = append(channels, c)
	}
	return d, channels
}

// switchState is what a switch says of itself.
type switchState struct {
	wait     links.Waiting
	channels []links.Channel
}

// state is called by the loop.
func (s *packetSwitch) state() switchState {
	w := s.spin.Waiting()
	st := switchState{wait: links.Waiting{Budget: w.Budget, Crowded: w.Crowded, Score: w.Score}}
	for _, p := range s.ports {
		if p == nil || p.rank != agent.NoRank {
			continue
		}
		c := links.Channel{To: int(p.host), State: links.StateLinked, Ended: p.ended != nil}
		from := originOf(p.link)
		if k, ok := p.link.(interface {
			Counts() (sent, received uint64)
		}); ok {
			sent, received := k.Counts()
			c.Bytes = counted(wireup.LinkStats{Counted: true, Sent: sent, Received: received})
		}
		if p.keeper != nil {
			from = p.keeper.from
			p.keeper.describe(&c)
		}
		c.Transport, c.Plane, c.PlaneReason = from.transport, from.plane, from.reason
		if c.Ended {
			c.State = links.StateEnded
		}
		if k, ok := p.link.(interface{ RTT() (time.Duration, bool) }); ok {
			c.RTT, _ = k.RTT()
		}
		st.channels = append(st.channels, c)
	}
	return st
}

// describe tells how a channel that lasts is kept.
func (k *keeper) describe(c *links.Channel) {
	c.Lasting, c.Resumes = true, k.Resumes()
	if k.why != nil {
		c.Lost = k.why.Error()
	}
	if k.apart || k.Handle() == link.NoHandle {
		c.State = links.StateLost
	}
}
