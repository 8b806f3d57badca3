package packetswitch

import (
	"errors"
	"io"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// endpoint is the switch's end of a link.
type endpoint struct {
	drive.Endpoint
	s       *Switch
	id      agent.LinkID
	rank    wire.WorldRank // of a proc, or agent.NoRank for a channel
	host    wire.HostRank  // host at the other end of a channel
	ended   error          // why the link cannot be read any more
	done    bool           // the proc has finished
	timer   machine.Timer  // bounds the wait for a channel's end
	channel *Channel       // if the channel is resumable

	before struct{ sent, received uint64 } // initial counts of a link that counts by itself: a ring counts for all its owners
}

type counter interface {
	Counts() (sent, received uint64)
}

// Receive reads a link, several times if it has much, and reports whether it had any bytes
// or has ended.
func (p *endpoint) Receive() (progress bool) {
	for i := 0; p.Reads(i); i++ {
		n, room, err := p.read()
		if err != nil {
			p.Drop(err)
			return true // the agent may have an event about it
		}
		progress = progress || n > 0
		if room == 0 || n < room && !p.Buffered() {
			return progress
		}
	}
	return progress
}

func (p *endpoint) read() (n, room int, err error) {
	in := p.s.Agent.Input(p.id)
	if in == nil {
		return 0, 0, nil
	}
	room = link.Len(in)
	if n, err = p.Link.Recv(in); err == nil && n > 0 {
		err = p.s.Agent.Received(p.id, n)
	}
	return n, room, err
}

// packed returns the link to use instead of l, if its bytes are to be compressed.
func (p *endpoint) packed(l link.Link, c *compress.Config) link.Link {
	if c == nil {
		return l
	}
	return p.Compress(l, *c)
}

// Due reports whether the agent has anything to write.
func (p *endpoint) Due() bool { return p.ended == nil && p.s.Agent.HasOutput(p.id) }

// Flush writes until nothing is left or the link is full, and reports whether it wrote any.
// An error in writing does not end the link of a proc: one that does not read any more may have
// sent something before, so only reading ends it. Of a channel what has arrived is read first, as
// it may say why the other end has closed it.
func (p *endpoint) Flush() (progress bool) {
	a := p.s.Agent
	for a.HasOutput(p.id) {
		out := a.Output(p.id)
		want := link.Len(out)
		n, err := p.Link.Send(out)
		if err != nil && p.rank != agent.NoRank {
			n, err = want, nil
		}
		if err != nil {
			p.drain()
			p.Drop(err)
			return true
		}
		a.Sent(p.id, n)
		progress = progress || n > 0
		if p.Full = n < want; p.Full {
			p.flushLater()
			return progress
		}
	}
	return progress
}

// flushLater makes a full link be flushed again when it has room. A link that is not read
// any more is in no poll set, so a timer does it.
func (p *endpoint) flushLater() {
	switch {
	case p.ended == nil:
		p.s.links.Await(&p.Endpoint, link.Readable|link.Writable)
	case p.timer == nil:
		p.timer = p.s.Machine.AfterFunc(retry, func() {
			p.s.Post(func() {
				if p.timer = nil; p.s.endpoints[p.id] == p {
					p.Flush()
				}
			})
		})
	}
}

// Drop handles a link that moves no more bytes. A proc that has finished closes its link, perhaps
// before its node has read that it has finished, so ProcDone reports a proc's end to the agent.
func (p *endpoint) Drop(cause error) {
	if p.ended != nil {
		return
	}
	p.ended = cause
	p.s.links.Remove(&p.Endpoint)
	switch {
	case p.channel != nil && cause == io.EOF: //nolint:errorlint // links report io.EOF itself
		_ = p.Link.Close() // waits until the peer has received our end
	case p.rank == agent.NoRank || errors.Is(cause, agent.ErrProtocol):
		p.close()
	case p.done:
		p.finish()
	}
}

func (p *endpoint) close() {
	p.s.endpoints[p.id] = nil
	p.stopTimer()
	_ = p.Link.Close()
	p.s.Agent.Closed(p.id, p.ended)
}

func (p *endpoint) stopTimer() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *endpoint) drain() {
	for p.ended == nil {
		n, _, err := p.read()
		if err != nil {
			p.Drop(err)
		}
		if n == 0 {
			return
		}
	}
}

// finish handles a proc that has finished and from which everything has come.
func (p *endpoint) finish() {
	if p.s.endpoints[p.id] != p {
		return // the proc broke the protocol
	}
	if err := p.s.Agent.ProcDone(p.rank); err == nil && p.ended != nil {
		p.close()
	}
}
