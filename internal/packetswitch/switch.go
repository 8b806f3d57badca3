// Package packetswitch moves packets between the procs of one host and the channels to
// other hosts: it drives the host's links for its agent (core/agent). A packet passes one
// goroutine and no queue except the agent's. A node runs one switch for each host, and the
// simulator runs them as tasks.
package packetswitch

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
)

// Lingering is how long a channel waits for the peer's end after both FINIs.
const Lingering = 2 * time.Second

// Config says what a switch works for.
type Config struct {
	Agent   *agent.Agent
	Machine drive.Machine // nil: this computer
	Spin    poll.Spinner

	// Notify is called by the loop with each event of the agent. It must not block.
	Notify func(agent.Event)

	// Patience is how long a channel that has ended here waits for the peer's end:
	// Lingering, or longer if the peer does not announce its end before.
	Patience time.Duration

	// Delivered reports, when a proc has said that it has finished, whether all that it has
	// sent is in its link. If not, the switch waits for the link's end. nil means that it
	// always is.
	Delivered func(rank wire.WorldRank) bool
}

// Switch drives the agent of one host. Its methods except Post, Quit, Stop, Done, ProcDone
// and Run may be called only by the loop, that is from functions given to Post, and by its
// creator before Run.
type Switch struct {
	Config
	links     *drive.Driver
	endpoints []*endpoint // by link number; nil once closed
	byRank    map[wire.WorldRank]*endpoint
	spin      poll.Spinner
	quit      bool
	done      chan struct{}

	channels []*Channel // that resume

	posted atomic.Bool // work is not empty
	mu     sync.Mutex
	work   []func()
	over   bool // the loop has ended: work is ignored
}

// endpoint is the switch's end of a link.
type endpoint struct {
	drive.Endpoint
	s       *Switch
	id      agent.LinkID
	rank    wire.WorldRank // of a proc, or agent.NoRank for a channel
	host    wire.HostRank  // at the other end of a channel
	ended   error          // why the link cannot be read any more
	done    bool           // the proc has finished
	timer   machine.Timer  // bounds the wait for a channel's end
	channel *Channel       // if the channel is resumable
}

// New makes a switch; Run drives it.
func New(c Config) (*Switch, error) {
	s := &Switch{Config: c, spin: c.Spin, byRank: make(map[wire.WorldRank]*endpoint), done: make(chan struct{})}
	if s.Patience == 0 {
		s.Patience = Lingering
	}
	if s.Machine == nil {
		s.Machine = machine.Local{}
	}
	var err error
	if s.links, err = drive.New(s.Machine, s); err != nil {
		return nil, err
	}
	s.links.Attend()
	return s, nil
}

// Post makes the loop call f. After the end of the loop it does nothing and returns false.
func (s *Switch) Post(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.work = append(s.work, f)
	s.posted.Store(true)
	s.links.Wake()
	return true
}

// Run is the loop. It ends after Stop or Quit, and closes every link.
func (s *Switch) Run() {
	defer close(s.done)
	s.spin.Begin()
	for i := 0; !s.quit; i++ {
		switch {
		case s.poll():
			s.spin.Begin()
			i = -1
		case s.spin.Over(i):
			s.sleep()
			s.spin.Begin()
			i = -1
		case i%64 == 63:
			runtime.Gosched() // Go takes polling for computing
		}
	}
	s.Close()
}

// poll polls once and moves what can be moved.
func (s *Switch) poll() (progress bool) {
	if s.posted.Load() {
		s.doWork()
		progress = true
	}
	if moved, _ := s.links.Step(); moved || progress {
		s.output()
		return true
	}
	return false
}

// sleep waits until a link or the waker has something.
func (s *Switch) sleep() {
	s.output() // an acknowledgement alone may have made room in a channel
	if !s.links.ArmAll() || s.posted.Load() {
		return
	}
	events, err := s.links.Wait(-1)
	if err != nil {
		s.SetFailed(err)
	}
	s.links.Handle(events)
	s.output()
}

// Event is called when the waker has woken the loop.
func (s *Switch) Event(uint32) (progress bool) { return true }

// SetFailed panics: the poll set is ours and open, so it cannot fail.
func (s *Switch) SetFailed(err error) { panic(fmt.Sprintf("packetswitch: %v", err)) }

// Tend makes the loop check the resumable channels.
func (s *Switch) Tend() {
	s.Post(func() {
		s.links.OnTimer(true)
		s.output()
	})
}

// Quit makes the loop end soon. Channels that are not done are closed without FINI.
func (s *Switch) Quit() {
	s.Post(func() { s.quit = true })
}

// Stop calls Quit and waits for the end of the loop.
func (s *Switch) Stop() {
	s.Quit()
	<-s.done
}

// Done returns a channel that is closed when the loop has ended.
func (s *Switch) Done() <-chan struct{} { return s.done }

// Close closes every link of a switch that was never run.
func (s *Switch) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over, s.work = true, nil
	for _, p := range s.endpoints {
		if p != nil {
			p.stopTimer()
			_ = p.Link.Close()
		}
	}
	_ = s.links.Close()
}

func (s *Switch) doWork() {
	s.mu.Lock()
	work := s.work
	s.work = nil
	s.posted.Store(false)
	s.mu.Unlock()
	for _, f := range work {
		f()
	}
}

// output writes what was queued and handles the agent's events.
func (s *Switch) output() {
	for _, l := range s.Agent.Touched() {
		if p := s.endpoints[l]; p != nil {
			p.Flush()
		}
	}
	for _, c := range s.channels {
		if c.p.ended == nil && s.Agent.HasOutput(c.p.id) {
			c.p.Flush() // its window may have room again
		}
	}
	for {
		ev, ok := s.Agent.Next()
		if !ok {
			return
		}
		if ev.Kind == agent.ChannelDone {
			s.endChannel(ev.Link)
		}
		s.Notify(ev)
	}
}

// Receive reads a link, several times if it has much, and reports whether it had any bytes
// or has ended.
func (p *endpoint) Receive() (progress bool) {
	for range drive.MaxReads {
		n, room, err := p.read()
		if err != nil {
			p.Drop(err)
			return true // the agent may have an event about it
		}
		progress = progress || n > 0
		if n < room || room == 0 {
			return progress
		}
	}
	return progress
}

// read reads once, at most as much as there is room for.
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

// Due reports whether the agent has anything to write.
func (p *endpoint) Due() bool { return p.ended == nil && p.s.Agent.HasOutput(p.id) }

// Flush writes until nothing is left or the link is full, and reports whether it wrote any.
// An error in writing does not end the link: a proc that does not read any more may have
// sent something before, so only reading ends it.
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

// retry is how long the switch waits before it writes again to a proc that has ended its
// own side and whose link is full.
const retry = time.Millisecond

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

// Drop handles a link that moves no more bytes. A proc that has finished closes its link,
// perhaps before its node has read that it has finished, so the agent is told of a proc's
// end by ProcDone.
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

// close closes a link and stops driving it.
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

// endChannel ends our side of a channel and gives the peer time to end its own.
func (s *Switch) endChannel(l agent.LinkID) {
	p := s.endpoints[l]
	if p == nil || p.ended != nil {
		return
	}
	if err := p.Link.CloseSend(); err != nil {
		p.Drop(err)
		return
	}
	wait := s.Patience
	if p.channel != nil {
		wait = p.channel.limit
	}
	p.timer = s.Machine.AfterFunc(wait, func() {
		s.Post(func() {
			if s.endpoints[l] == p {
				p.Drop(io.EOF)
				s.output()
			}
		})
	})
}

// AttachProc gives the switch the link to a proc.
func (s *Switch) AttachProc(l link.Link, rank wire.WorldRank) error {
	p := &endpoint{rank: rank}
	if err := s.attach(p, l); err != nil {
		return err
	}
	s.byRank[rank] = p
	return s.Agent.AttachProc(p.id, rank)
}

// AttachHost gives the switch a channel to a host.
func (s *Switch) AttachHost(l link.Link, host wire.HostRank) error {
	p := &endpoint{rank: agent.NoRank, host: host}
	if err := s.attach(p, l); err != nil {
		return err
	}
	return s.Agent.AttachHost(p.id, host)
}

func (s *Switch) attach(p *endpoint, l link.Link) error {
	p.s, p.id, p.Link = s, agent.LinkID(len(s.endpoints)), l
	if p.channel == nil && l.Handle() == link.NoHandle {
		return drive.ErrNoHandle
	}
	if err := s.links.Add(&p.Endpoint, uint32(p.id), p); err != nil {
		return err
	}
	s.endpoints = append(s.endpoints, p)
	return nil
}

// ProcDone says that the proc has told its node that it has finished.
func (s *Switch) ProcDone(rank wire.WorldRank) {
	s.Post(func() {
		p := s.byRank[rank]
		if s.endpoints[p.id] != p {
			return // it broke the protocol
		}
		p.done = true
		if p.ended == nil && (s.Delivered == nil || s.Delivered(rank)) {
			p.drain()
		}
		if p.ended != nil || s.Delivered == nil || s.Delivered(rank) {
			p.finish()
		}
		s.output()
	})
}

// drain reads everything that is in the link.
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
		return // it broke the protocol
	}
	if err := p.s.Agent.ProcDone(p.rank); err == nil && p.ended != nil {
		p.close()
	}
}

// ChannelState is the state of a channel.
type ChannelState struct {
	Host    wire.HostRank
	Link    link.Link
	Ended   bool     // its peer has ended it, or it was lost
	Channel *Channel // nil if it is not resumable
}

// Channels returns the state of the channels that are not closed.
func (s *Switch) Channels() (all []ChannelState) {
	for _, p := range s.endpoints {
		if p != nil && p.rank == agent.NoRank {
			all = append(all, ChannelState{p.host, p.Link, p.ended != nil, p.channel})
		}
	}
	return all
}

// Waiting returns how the loop waits.
func (s *Switch) Waiting() poll.Waiting { return s.spin.Waiting() }

// forget removes a channel that has ended from the resumable ones.
func (s *Switch) forget(c *Channel) {
	if i := slices.Index(s.channels, c); i >= 0 {
		s.channels = slices.Delete(slices.Clone(s.channels), i, i+1) // a copy, since a caller may be iterating
	}
}
