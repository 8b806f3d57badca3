package packetswitch

import (
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
)

// Channel is a channel that outlives its connections. Take and Lose may be called by any
// goroutine, the rest of it is the loop's.
type Channel struct {
	*drive.Resumable
	s     *Switch
	p     *port
	limit time.Duration
	again func(why error)
}

// ChannelConfig says how a channel that resumes is kept.
type ChannelConfig struct {
	Host    wire.HostRank
	Session resume.Session
	Window  int
	Limit   time.Duration // without a connection, until the channel is given up
	// Again has somebody dial, who calls Take or Lose: because why was the end of the last
	// connection, if that is known. nil: this is the end that is dialled.
	Again func(why error)
	// Watch, if it is not nil, gives what is used in the place of the channel's link.
	Watch func(link.Link) link.Link
}

// AttachChannel makes a channel that is to outlive l, its first connection, part of the switch.
func (s *Switch) AttachChannel(l link.Link, c ChannelConfig) (*Channel, error) {
	if l.Handle() == link.NoHandle {
		return nil, drive.ErrNoHandle
	}
	p := &port{rank: agent.NoRank, host: c.Host}
	x := &Channel{s: s, p: p, limit: c.Limit, again: c.Again}
	p.channel = x
	x.Resumable = s.links.NewResumable(&p.Port, c.Session, c.Window, drive.Terms{Dialler: c.Again != nil, Limit: c.Limit, Stay: c.Limit}, x)
	p.Link = x.Resumable
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

// Host is where the channel leads to.
func (c *Channel) Host() wire.HostRank { return c.p.host }

// Dials reports whether it is this end that dials.
func (c *Channel) Dials() bool { return c.again != nil }

// Take is given a further connection, and owns it.
func (c *Channel) Take(l link.Link) {
	ok := c.s.Post(func() {
		if c.s.ports[c.p.id] != c.p {
			_ = l.Close()
			return
		}
		c.Resumable.Take(l)
		c.s.links.Mend()
	})
	if !ok {
		_ = l.Close()
	}
}

// Lose is told that there is no further connection.
func (c *Channel) Lose(reason string) {
	c.s.Post(func() {
		c.GiveUp(reason)
		c.s.links.Mend()
	})
}

// Ask has somebody dial.
func (c *Channel) Ask(why error, _ uint64) bool {
	c.again(why)
	return true
}

// Resumed writes what has waited for a connection.
func (c *Channel) Resumed() { c.p.Flush() }

// Ended lets go of the channel. If it was lost before its time, the agent hears why.
func (c *Channel) Ended(why error) {
	c.s.forget(c)
	switch {
	case c.p.ended == nil && why != nil:
		c.p.Drop(why)
	case c.p.ended != nil && c.s.ports[c.p.id] == c.p:
		c.p.close()
	}
	c.s.output()
}
