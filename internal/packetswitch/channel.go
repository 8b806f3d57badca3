package packetswitch

import (
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Channel is a channel that outlives its connections. Any goroutine may call Take and Lose;
// the other methods are for the switch's loop.
type Channel struct {
	*drive.Resumable
	s     *Switch
	p     *endpoint
	limit time.Duration
	again func(why error, limit time.Duration)
}

// ChannelConfig configures a resumable channel.
type ChannelConfig struct {
	Host       wire.HostRank
	Session    resume.ResumableID
	Window     int
	Limit      time.Duration // maximum time without a connection before the channel is given up
	FirstLimit time.Duration // the same until both ends have used one, if it is longer: the other host may still be connecting to others
	// Redial starts a dial within a limit, after which the dialler calls Take or Lose. why is the
	// reason for the end of the last connection, if known. Redial is nil at the end that is dialled.
	Redial func(why error, limit time.Duration)
	// Compress, if not nil, makes the channel compress its bytes.
	Compress *compress.Config
	// Watch, if not nil, wraps the channel's link.
	Watch func(link.Link) link.Link
}

// AttachChannel makes a resumable channel part of the switch; l is its first connection.
func (s *Switch) AttachChannel(l link.Link, c ChannelConfig) (*Channel, error) {
	if l.Handle() == link.NoHandle {
		return nil, drive.ErrNoHandle
	}
	p := &endpoint{rank: agent.NoRank, host: c.Host}
	x := &Channel{s: s, p: p, limit: c.Limit, again: c.Redial}
	p.channel = x
	x.Resumable = s.links.NewResumable(&p.Endpoint, c.Session, c.Window, drive.ResumeRules{Dialler: c.Redial != nil, Limit: c.Limit, FirstLimit: c.FirstLimit, Linger: c.Limit}, x)
	p.Link = p.packed(x.Resumable, c.Compress)
	if c.Watch != nil {
		p.Link = c.Watch(p.Link)
	}
	if err := s.attach(p, p.Link); err != nil {
		return nil, err
	}
	s.channels = append(s.channels, x)
	x.Begin(l)
	return x, s.Agent.AttachHost(p.id, c.Host)
}

// Host returns the host at the other end.
func (c *Channel) Host() wire.HostRank { return c.p.host }

// Dials reports whether this end dials.
func (c *Channel) Dials() bool { return c.again != nil }

// SetLink gives the channel another connection, which it owns.
func (c *Channel) SetLink(l link.Link) {
	ok := c.s.Post(func() {
		if c.s.endpoints[c.p.id] != c.p {
			_ = l.Close()
			return
		}
		c.Resumable.SetLink(l)
		c.s.links.Mend()
	})
	if !ok {
		_ = l.Close()
	}
}

// Lose reports that there will be no further connection.
func (c *Channel) Lose(reason string) {
	c.s.Post(func() {
		c.GiveUp(reason)
		c.s.links.Mend()
	})
}

// Ask starts a dial.
func (c *Channel) Ask(why error, _ uint64) bool {
	c.again(why, c.Patience())
	return true
}

// Resumed sends the bytes that have waited for a connection.
func (c *Channel) Resumed() { c.p.Flush() }

// Ended removes the channel. If it ended too early, the agent gets the reason.
func (c *Channel) Ended(why error) {
	c.s.forget(c)
	switch {
	case c.p.ended == nil && why != nil:
		c.p.Drop(why)
	case c.p.ended != nil && c.s.endpoints[c.p.id] == c.p:
		c.p.close()
	}
	c.s.output()
}
