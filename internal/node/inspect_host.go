package node

import (
	"context"
	"time"

	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/wireup"
)

// describe asks a host's switch, which answers between two packets.
func (h *ownHost) describe(ctx context.Context, n *node) (links.Host, []links.Channel) {
	d := links.Host{Rank: int(h.Rank), Address: h.Config.Address.String(), NoBoard: h.noBoard,
		Wait: links.Waiting{Setting: spinSetting(n.opt.Site.Wait)}}
	answer := make(chan switchState, 1)
	h.loop.Post(func() { answer <- h.switchState() })
	var s switchState
	select {
	case s = <-answer:
	case <-h.loop.Done():
		return d, nil
	case <-ctx.Done():
		return d, nil
	}
	d.Wait.Budget, d.Wait.Crowded, d.Wait.Score, d.Wait.State = s.wait.Budget, s.wait.Crowded, s.wait.Score, s.wait.State
	var channels []links.Channel
	for _, c := range s.channels {
		c.From = int(h.Rank)
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

// switchState is called by the loop.
func (h *ownHost) switchState() switchState {
	w := h.loop.Waiting()
	st := switchState{wait: links.Waiting{Budget: w.Budget, Crowded: w.Crowded, Score: w.Score}}
	for _, x := range h.loop.Channels() {
		c := links.Channel{To: int(x.Host), State: links.StateLinked, Ended: x.Ended}
		from := dial.OriginOf(x.Link)
		if k, ok := x.Link.(interface {
			Counts() (sent, received uint64)
		}); ok {
			sent, received := k.Counts()
			c.Bytes = counted(wireup.LinkStats{Counted: true, Sent: sent, Received: received})
		}
		if x.Channel != nil {
			from = h.originOf(x.Channel)
			describeResumable(x.Channel.Resumable, &c)
		}
		c.Transport, c.Plane, c.PlaneReason = from.Transport, from.Plane, from.Reason
		if c.Ended {
			c.State = links.StateEnded
		}
		if k, ok := x.Link.(interface{ RTT() (time.Duration, bool) }); ok {
			c.RTT, _ = k.RTT()
		}
		st.channels = append(st.channels, c)
	}
	return st
}

// originOf is where the connection of a channel that resumes came from.
func (h *ownHost) originOf(x *packetswitch.Channel) dial.Origin {
	for _, c := range h.resumable {
		if c.Channel == x {
			return *c.from.Load()
		}
	}
	return dial.Origin{}
}

// describeResumable tells how a channel that resumes is kept.
func describeResumable(r *drive.Resumable, c *links.Channel) {
	c.Resumable, c.Resumes = true, r.Resumes()
	apart, why := r.Apart()
	if why != nil {
		c.Lost = why.Error()
	}
	if apart {
		c.State = links.StateLost
	}
}
