// Package packetswitch moves packets between the procs of one host and the channels to
// other hosts: it drives the host's links for its agent (core/agent). A packet passes one
// goroutine and no queue except the agent's. A node runs one switch for each host, and the
// simulator runs them as tasks.
package packetswitch

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

// LingerTime is the time that a channel waits for the peer's end after both FINIs.
const LingerTime = 2 * time.Second

// Config configures a Switch.
type Config struct {
	Agent   *agent.Agent
	Machine drive.Machine // nil: this computer
	Spin    polling.Spinner

	// Notify is called by the loop with each event of the agent. It must not block.
	Notify func(agent.Event)

	// Answer is called by the loop with a question of the node of another host. It must not block,
	// and reply must be called once. nil: no question gets an answer.
	Answer func(from wire.HostRank, question []byte, reply func(answer []byte))

	// Patience is the time that a channel that has ended here waits for the peer's end: Lingering,
	// or longer if the peer does not announce its end before.
	Patience time.Duration

	// Delivered reports, when a proc has finished, whether all that it has sent is in its link. If
	// not, the switch waits for the link's end. nil means that it always is.
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
	spin      polling.Spinner
	quit      bool
	done      chan struct{}

	channels []*Channel // resumable ones

	answers map[asking]func([]byte) // who waits for answers of other nodes

	telling []*endpoint // channels whose peers are being sent a failure
	told    func()      // called when they are closed

	posted atomic.Bool // work is not empty
	mu     sync.Mutex
	work   []func()
	over   bool // the loop has ended: work is ignored
}

// New makes a switch; Run drives it.
func New(c Config) (*Switch, error) {
	s := &Switch{Config: c, spin: c.Spin, byRank: make(map[wire.WorldRank]*endpoint), answers: make(map[asking]func([]byte)), done: make(chan struct{})}
	s.Patience = cmp.Or(s.Patience, LingerTime)
	if s.Machine == nil {
		s.Machine = machine.Local{}
	}
	var err error
	if s.links, err = drive.New(s.Machine, s); err != nil {
		return nil, err
	}
	s.links.SetAttended()
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

// Run runs the loop. It ends after Stop or Quit, and closes every link.
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
			runtime.Gosched() // to Go polling looks like computing
		}
	}
	s.Close()
}

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

// TimerFired makes the loop check the resumable channels.
func (s *Switch) TimerFired() {
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

// Fail sends the hosts at the other ends of the channels the failure of the job, as agent.Fail
// does. Then the loop calls done, unless it ends before, when all these hosts have closed their
// channels.
func (s *Switch) Fail(text string, done func()) {
	s.Post(func() {
		for _, l := range s.Agent.Fail(text) {
			s.telling = append(s.telling, s.endpoints[l])
		}
		s.told = done
		s.output()
	})
}

// SendLost sends the other hosts which procs are lost, as agent.SendLost does.
func (s *Switch) SendLost(l wire.Lost) {
	s.Post(func() {
		agent.SendLost(s.Agent, l)
		s.output()
	})
}

// ContinueWithout gives up a host without which the job continues: its channel is closed if it is
// still open.
func (s *Switch) ContinueWithout(host wire.HostRank, why error) {
	s.Post(func() {
		for _, p := range s.endpoints {
			if p != nil && p.rank == agent.NoRank && p.host == host {
				p.Drop(why)
				if s.endpoints[p.id] == p { // a resumable channel waits for its other end
					p.close()
				}
			}
		}
		agent.ContinueWithout(s.Agent, host, why)
		s.output()
	})
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

func (s *Switch) output() {
	for _, l := range s.Agent.GrownQueues() {
		if p := s.endpoints[l]; p != nil {
			p.Flush()
		}
	}
	for _, c := range s.channels {
		if c.p.ended == nil && s.Agent.HasOutput(c.p.id) {
			c.p.Flush() // the channel's window may have room again
		}
	}
	s.events()
	if s.told != nil && !slices.ContainsFunc(s.telling, func(p *endpoint) bool { return p.ended == nil }) {
		s.told()
		s.told = nil
	}
}

func (s *Switch) events() {
	for {
		ev, ok := s.Agent.Next()
		if !ok {
			return
		}
		switch ev.Kind {
		case agent.ChannelDone:
			s.endChannel(ev.Link)
		case agent.Asked:
			s.asked(ev)
			continue
		case agent.Answered:
			s.answered(ev)
			continue
		default:
		}
		s.Notify(ev)
	}
}

// retry is how long the switch waits before it writes again to a proc that has ended its
// own side and whose link is full.
const retry = time.Millisecond

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

// AttachProc adds the link to a proc to the switch.
func (s *Switch) AttachProc(l link.Link, rank wire.WorldRank) error {
	p := &endpoint{rank: rank}
	if err := s.attach(p, l); err != nil {
		return err
	}
	s.byRank[rank] = p
	return s.Agent.AttachProc(p.id, rank)
}

// AttachHost adds a channel to a host to the switch. Its bytes are compressed if c is not nil.
func (s *Switch) AttachHost(l link.Link, host wire.HostRank, c *compress.Config) error {
	p := &endpoint{rank: agent.NoRank, host: host}
	if err := s.attach(p, p.packed(l, c)); err != nil {
		return err
	}
	return s.Agent.AttachHost(p.id, host)
}

func (s *Switch) attach(p *endpoint, l link.Link) error {
	p.s, p.id, p.Link = s, agent.LinkID(len(s.endpoints)), l
	if p.channel == nil && l.Handle() == link.NoHandle {
		return drive.ErrNoHandle
	}
	if c, ok := l.(counter); ok {
		p.before.sent, p.before.received = c.Counts()
	}
	if err := s.links.Add(&p.Endpoint, uint32(p.id), p); err != nil {
		return err
	}
	s.endpoints = append(s.endpoints, p)
	return nil
}

// ProcDone records that the proc has reported to its node that it has finished.
func (s *Switch) ProcDone(rank wire.WorldRank) {
	s.Post(func() {
		p := s.byRank[rank]
		if s.endpoints[p.id] != p {
			return // the proc broke the protocol
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

// ChannelState is the state of a channel.
type ChannelState struct {
	Host    wire.HostRank
	Link    link.Link // without the layer that compresses
	Ended   bool      // its peer has ended it, or it was lost
	Channel *Channel  // nil if it is not resumable

	Counted        bool // the byte counts are known, for packets of the two switches alone
	Sent, Received uint64
	Compressed     *compress.Counts // nil: not compressed
}

// Channels returns the state of the channels that are not closed.
func (s *Switch) Channels() (all []ChannelState) {
	for _, p := range s.endpoints {
		if p == nil || p.rank != agent.NoRank {
			continue
		}
		c := ChannelState{Host: p.host, Link: p.Link, Ended: p.ended != nil, Channel: p.channel}
		if p.Compressed != nil {
			counts := p.Compressed.Counted()
			c.Link, c.Compressed = p.Compressed.Below(), &counts
		}
		if k, ok := p.Link.(counter); ok {
			sent, received := k.Counts()
			said, heard := agent.InquiryBytes(s.Agent, p.host)
			c.Counted, c.Sent, c.Received = true, sent-p.before.sent-said, received-p.before.received-heard
		}
		all = append(all, c)
	}
	return all
}

// Waiting returns how the loop waits.
func (s *Switch) Waiting() polling.Waiting { return s.spin.Waiting() }

func (s *Switch) forget(c *Channel) {
	if i := slices.Index(s.channels, c); i >= 0 {
		s.channels = slices.Delete(slices.Clone(s.channels), i, i+1) // a copy, since a caller may be iterating
	}
}
