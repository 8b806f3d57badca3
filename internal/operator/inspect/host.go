package inspect

import (
	"context"
	"time"

	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
)

// describeHost asks a host's switch, which answers between two packets.
func (c *Control) describeHost(ctx context.Context, index int) (links.Host, []links.Channel, []host.LinkID) {
	h := &c.Hosts[index]
	d := links.Host{Rank: int(h.Rank), Address: h.Config.Address.String(), NoBoard: h.NoBoard,
		Wait: links.Waiting{Setting: site.EncodeWait(c.Site.Routes.Site.Wait)}}
	answer := make(chan switchState, 1)
	h.Switch.Post(func() { answer <- c.switchState(h) })
	var s switchState
	select {
	case s = <-answer:
	case <-h.Switch.Done():
		return d, nil, nil
	case <-ctx.Done():
		return d, nil, nil
	}
	d.Wait.Budget, d.Wait.Oversubscribed, d.Wait.Score, d.Wait.State = s.wait.Budget, s.wait.Oversubscribed, s.wait.Score, s.wait.State
	var channels []links.Channel
	for _, x := range s.channels {
		x.From = int(h.Rank)
		x.Address = c.Site.Routes.World.Hosts[x.To].Address.Addr().String()
		channels = append(channels, x)
	}
	return d, channels, s.passed
}

type switchState struct {
	wait     links.Waiting
	channels []links.Channel
	passed   []host.LinkID // the ID of each, at the plugin that its bytes pass through
}

// switchState describes a switch, in whose goroutine it runs.
func (c *Control) switchState(h *Host) switchState {
	w := h.Switch.Waiting()
	st := switchState{wait: links.Waiting{Budget: w.Budget, Oversubscribed: w.Oversubscribed, Score: w.Score}}
	for _, x := range h.Switch.Channels() {
		d := links.Channel{To: int(x.Host), State: links.StateLinked, Ended: x.Ended}
		from := dial.OriginOf(x.Link)
		d.Bytes, d.Pure = counted(wireup.LinkStats{Counted: x.Counted, Sent: x.Sent, Received: x.Received}), x.Counted
		if k := x.Compressed; k != nil {
			d.Compressed = &wireup.CompressedBytes{Sent: k.Sent, Received: k.Received, SentCompressed: k.WireSent, ReceivedCompressed: k.WireReceived}
		}
		if x.Channel != nil {
			from = c.Channels.OriginOf(h.Index, x.Channel)
			describeResumable(x.Channel.Resumable, &d)
		}
		d.Transport, d.Plane, d.PlaneReason = from.Transport, from.Plane, from.Reason
		if d.Ended {
			d.State = links.StateEnded
		}
		if k, ok := x.Link.(interface{ RTT() (time.Duration, bool) }); ok {
			d.RTT, _ = k.RTT()
		}
		st.channels, st.passed = append(st.channels, d), append(st.passed, from.ID)
	}
	return st
}

func describeResumable(r *drive.Resumable, c *links.Channel) {
	c.Resumable, c.Resumes = true, r.Resumes()
	apart, why := r.Broken()
	if why != nil {
		c.Lost = why.Error()
	}
	if apart {
		c.State = links.StateLost
	}
}
