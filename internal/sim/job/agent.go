package job

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// lingering is how long a channel waits for the peer's end after both FINIs.
const lingering = 2 * time.Second

// packetSwitch drives the agent of one host.
type packetSwitch struct {
	w      *World
	s      *site
	a      *agent.Agent
	host   wire.HostRank
	ports  []*port
	byRank map[wire.WorldRank]*port
	dead   bool
}

// port is a link of a switch.
type port struct {
	id     agent.LinkID
	link   end
	rank   wire.WorldRank // of a proc, or agent.NoRank for a channel
	ended  error
	done   bool // the proc has finished
	linger *kernel.Timer
}

func (s *packetSwitch) attach(l end, rank wire.WorldRank, host wire.HostRank) error {
	p := &port{id: agent.LinkID(len(s.ports)), rank: rank, link: l}
	s.ports = append(s.ports, p)
	var err error
	if rank == agent.NoRank {
		err = s.a.AttachHost(p.id, host)
	} else {
		s.byRank[rank] = p
		err = s.a.AttachProc(p.id, rank)
	}
	l.OnReady(func() { s.ready(p) })
	return err
}

// ready is the switch's turn for one link.
func (s *packetSwitch) ready(p *port) {
	if s.dead || s.ports[p.id] != p {
		return
	}
	for p.ended == nil && s.read(p) {
	}
	if s.ports[p.id] == p {
		s.flush(p)
	}
	s.output()
	s.tell()
}

// tell lets the observer know how the agent is.
func (s *packetSwitch) tell() {
	if o, ok := s.w.cfg.Observer.(AgentObserver); ok && !s.dead {
		o.Agent(int(s.host), s.a.Stats())
	}
}

// read reads once and tells whether there may be more.
func (s *packetSwitch) read(p *port) bool {
	in := s.a.Input(p.id)
	if in == nil {
		return false
	}
	n, err := p.link.Recv(in)
	if err == nil {
		err = s.a.Received(p.id, n)
	}
	if err != nil {
		s.end(p, err)
		return false
	}
	return n > 0
}

func (s *packetSwitch) flush(p *port) {
	for (p.ended == nil || inOrder(p.ended)) && s.a.HasOutput(p.id) {
		n, err := p.link.Send(s.a.Output(p.id))
		if err != nil {
			if p.rank == agent.NoRank {
				s.end(p, err)
			}
			return // what a proc has said before it left is still to be read
		}
		s.a.Sent(p.id, n)
		if n == 0 {
			return // OnReady comes back to it
		}
	}
}

// output writes what was queued and hears what the agent noticed.
func (s *packetSwitch) output() {
	for _, l := range s.a.Touched() {
		if p := s.ports[l]; p != nil {
			s.flush(p)
		}
	}
	for {
		ev, ok := s.a.Next()
		if !ok {
			return
		}
		if s.w.k.Noting() {
			s.w.k.Note("host %d: %v", s.host, ev)
		}
		if ev.Kind == agent.ChannelDone {
			s.endChannel(ev.Link)
		}
		s.s.noticed(s, ev)
	}
}

// end is for a link that moves no more bytes. A proc that has finished ends its
// link, maybe before its node hears that it has finished. Links to procs do not
// break while both sides live: if one does, nobody knows what it has lost.
func (s *packetSwitch) end(p *port, cause error) {
	if p.ended != nil {
		return
	}
	p.ended = cause
	if !inOrder(cause) { // then it may still want something
		p.link.OnReady(nil)
	}
	switch {
	case p.rank == agent.NoRank || errors.Is(cause, agent.ErrProtocol):
		s.closed(p)
	case !inOrder(cause):
		s.s.report(blame.Lost, fmt.Errorf("rank %d: its link to host %d: %w", p.rank, s.host, cause))
	case p.done:
		s.finish(p)
	}
}

func (s *packetSwitch) closed(p *port) {
	s.ports[p.id] = nil
	if p.linger != nil {
		p.linger.Stop()
	}
	_ = p.link.Close()
	s.a.Closed(p.id, p.ended)
}

// endChannel ends our side of a channel and gives the peer time to end its own.
func (s *packetSwitch) endChannel(l agent.LinkID) {
	p := s.ports[l]
	if p == nil || p.ended != nil {
		return
	}
	if err := p.link.CloseSend(); err != nil {
		s.end(p, err)
		return
	}
	p.linger = s.w.k.After(lingering, func() {
		if s.ports[l] == p && !s.dead {
			s.end(p, io.EOF)
			s.output()
			s.tell()
		}
	})
}

// procDone is the proc's word that it has finished: all it sent is in its link,
// or on the way, and the end behind it.
func (s *packetSwitch) procDone(rank wire.WorldRank) {
	p := s.byRank[rank]
	if s.dead || s.ports[p.id] != p { // it broke the protocol
		return
	}
	p.done = true
	switch {
	case p.ended == nil:
		s.ready(p)
	case inOrder(p.ended):
		s.finish(p)
		s.output()
		s.tell()
	}
}

// finish is for a proc that has finished, and all it sent has come.
func (s *packetSwitch) finish(p *port) {
	if err := s.a.ProcDone(p.rank); err == nil {
		s.closed(p)
	}
}

// crash ends the switch at once.
func (s *packetSwitch) crash() {
	s.dead = true
	for _, p := range s.ports {
		if p != nil {
			if p.linger != nil {
				p.linger.Stop()
			}
			sever(p.link)
		}
	}
}
