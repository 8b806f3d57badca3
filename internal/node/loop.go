package node

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/poll"
)

const (
	// maxReads bounds how often one link is read before the others have their turn.
	maxReads = 4
	// scanEvery is how many polls of the busy links go by before the poll set is
	// asked about all others.
	scanEvery = 16
	// busy is how many reads in a row polling must bring before a link leaves the
	// poll set until the next sleep: the set costs each arriving packet a detour.
	busy = 64
	// hotLinks are polled without asking the set: those of an exchange and back.
	hotLinks = 2
	// lingering is how long a channel waits for the peer's end after both FINIs.
	lingering = 2 * time.Second
	// wakerKey is the waker's key in the poll set; ports use their link's number.
	wakerKey = ^uint32(0)
)

var errNoHandle = errors.New("the link has no descriptor to wait for")

// port is a link of a switch.
type port struct {
	id       agent.LinkID
	link     link.Link
	rank     wire.WorldRank // of a proc, or agent.NoRank for a channel
	host     wire.HostRank  // at the other end of a channel
	interest link.Interest  // what the poll set waits for; 0: not in the set
	memory   bool           // reading it costs next to nothing; the set tells of it only after Arm
	streak   int            // reads that polling brought since the last sleep
	ended    error          // why the link can be read no more
	timer    *time.Timer    // bounds the wait for a channel's end
	keeper   *keeper        // of a lasting channel
}

// packetSwitch drives the agent of one host: in one turn of its loop it asks
// which links are readable, reads them, and writes what they brought. A packet
// sees one goroutine and no queue but the agent's.
type packetSwitch struct {
	agent  *agent.Agent
	notify func(agent.Event) // called by the loop; must not block
	ports  []*port           // by link number; nil once closed
	byRank map[wire.WorldRank]*port
	set    *poll.Set
	waker  *poll.Waker
	hot    [hotLinks]*port // the last that brought something
	polls  uint            // made so far
	unkept []*port         // those of which the set knows nothing without Arm
	spin   poll.Spinner
	quit   bool
	done   chan struct{}

	// patience is how long a channel waits for the peer's end when it has ended here:
	// lingering, and longer where the peer has not said before that it is about to.
	patience time.Duration

	keepers []*keeper // of the lasting channels, ended ones too

	mu   sync.Mutex
	work []func()
	over bool // the loop has ended: work is of no use
}

// newSwitch makes a switch; run drives it.
func newSwitch(a *agent.Agent, spin poll.Spinner, notify func(agent.Event)) (*packetSwitch, error) {
	set, err := poll.NewSet()
	if err != nil {
		return nil, err
	}
	waker, err := poll.NewWaker()
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	if err := set.Add(waker.FD(), wakerKey, link.Readable); err != nil {
		return nil, errors.Join(err, set.Close(), waker.Close())
	}
	return &packetSwitch{
		agent: a, notify: notify, set: set, waker: waker, spin: spin,
		byRank: make(map[wire.WorldRank]*port), done: make(chan struct{}), patience: lingering,
	}, nil
}

// post has f called by the loop. It does nothing, and says so, after the loop's
// end.
func (s *packetSwitch) post(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.work = append(s.work, f)
	s.waker.Wake()
	return true
}

// run is the loop. It ends after stop and closes every link.
func (s *packetSwitch) run() {
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
			runtime.Gosched() // polling looks like computing to Go
		}
	}
	s.close()
}

// poll looks once and moves what can be moved: mostly at the links that were
// busy last, now and then at all, however busy those are.
func (s *packetSwitch) poll() (progress bool) {
	for _, p := range s.hot {
		if p != nil && p.ended == nil && s.read(p) {
			progress = true
			s.hit(p)
		}
	}
	if progress {
		s.output()
	}
	if s.polls++; s.polls%scanEvery == 0 {
		progress = s.turn(0) || progress
		progress = s.lookAround() || progress // whatever else is busy
		progress = s.readStirred() || progress
	}
	return progress
}

// sleep waits until a link or the waker has something.
func (s *packetSwitch) sleep() {
	for _, p := range s.hot {
		if p != nil {
			s.cool(p)
		}
	}
	if ready := s.arm(); s.armLasting() && ready {
		s.turn(-1)
	}
}

// hit says that polling p brought something.
func (s *packetSwitch) hit(p *port) {
	if p.streak++; p.streak == busy && p.interest == link.Readable && s.set.Remove(p.link.Handle()) == nil {
		p.interest = 0
	}
}

// cool puts a busy link back into the poll set.
func (s *packetSwitch) cool(p *port) {
	p.streak = 0
	if p.ended == nil && p.interest == 0 {
		s.want(p, link.Readable)
	}
}

// warm makes p one of the links that are polled without asking the set.
func (s *packetSwitch) warm(p *port) {
	if slices.Contains(s.hot[:], p) {
		return
	}
	if old := s.hot[hotLinks-1]; old != nil {
		s.cool(old)
	}
	copy(s.hot[1:], s.hot[:])
	s.hot[0] = p
}

// stop ends the loop and waits for that. Channels are dropped without FINI if
// they were not done.
func (s *packetSwitch) stop() {
	s.post(func() { s.quit = true })
	<-s.done
}

func (s *packetSwitch) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over, s.work = true, nil
	for _, p := range s.ports {
		if p != nil {
			p.stopTimer()
			_ = p.link.Close()
		}
	}
	_ = s.set.Close()
	_ = s.waker.Close()
}

// turn polls or sleeps once and moves what can be moved. A handle that is ready and
// moves nothing is no progress: bells of links through memory may be left over.
func (s *packetSwitch) turn(timeout time.Duration) (progress bool) {
	events, err := s.set.Wait(timeout)
	if err != nil {
		panic(fmt.Sprintf("node: %v", err)) // the set is ours and open
	}
	for _, ev := range events {
		if ev.Key == wakerKey {
			s.waker.Clear()
			s.doWork()
			s.mendLost()
			progress = true
			continue
		}
		p := s.ports[ev.Key]
		if p == nil {
			continue // closed in this turn
		}
		if ev.Readable && s.read(p) {
			progress = true
			if p.ended == nil {
				s.warm(p)
			}
		}
		if ev.Writable && s.ports[p.id] == p {
			if p.keeper != nil {
				p.keeper.Push()
			}
			progress = s.flush(p) || progress
		}
	}
	if len(events) > 0 {
		s.output()
	}
	return progress
}

func (s *packetSwitch) doWork() {
	s.mu.Lock()
	work := s.work
	s.work = nil
	s.mu.Unlock()
	for _, f := range work {
		f()
	}
}

// output writes what was queued and passes on what the agent noticed.
func (s *packetSwitch) output() {
	for _, l := range s.agent.Touched() {
		if p := s.ports[l]; p != nil {
			s.flush(p)
		}
	}
	for _, k := range s.keepers {
		if k.p.ended == nil && s.agent.HasOutput(k.p.id) {
			s.flush(k.p) // for its window may have room again
		}
	}
	for {
		ev, ok := s.agent.Next()
		if !ok {
			return
		}
		if ev.Kind == agent.ChannelDone {
			s.endChannel(ev.Link)
		}
		s.notify(ev)
	}
}

// read reads a link, a few times if it has much, and tells whether it had any
// or has ended.
func (s *packetSwitch) read(p *port) (progress bool) {
	for range maxReads {
		in := s.agent.Input(p.id)
		if in == nil {
			return progress
		}
		room := link.Len(in)
		n, err := p.link.Recv(in)
		if err == nil && n > 0 {
			progress = true
			err = s.agent.Received(p.id, n)
		}
		if err != nil {
			s.end(p, err)
			return true // the agent may have something to say about it
		}
		if n < room {
			return progress
		}
	}
	return progress
}

// flush writes until nothing is left or the link is full, and tells whether it
// wrote any. A proc that reads no more may have said something before, so it is
// reading that ends its link.
func (s *packetSwitch) flush(p *port) (progress bool) {
	for s.agent.HasOutput(p.id) {
		out := s.agent.Output(p.id)
		want := link.Len(out)
		n, err := p.link.Send(out)
		if err != nil && p.rank != agent.NoRank {
			n, err = want, nil
		}
		if err != nil {
			s.end(p, err)
			return true
		}
		s.agent.Sent(p.id, n)
		progress = progress || n > 0
		if n < want {
			s.want(p, link.Readable|link.Writable)
			return progress
		}
	}
	if p.interest != 0 {
		s.want(p, link.Readable)
	}
	return progress
}

// want changes what the set tells about p.
func (s *packetSwitch) want(p *port, what link.Interest) {
	if p.ended != nil || p.interest == what {
		return
	}
	if p.keeper != nil {
		s.wantLasting(p)
		return
	}
	change := s.set.Modify
	if p.interest == 0 {
		change = s.set.Add
	}
	if err := change(p.link.Handle(), uint32(p.id), what); err != nil {
		s.end(p, err)
		return
	}
	p.interest = what
}

// end is for a link that moves no more bytes. A proc that has finished closes
// its link, maybe before its node has read that it has finished; so the agent
// hears of a proc's end from procDone or procGone.
func (s *packetSwitch) end(p *port, cause error) {
	if p.ended != nil {
		return
	}
	p.ended = cause
	if p.interest != 0 {
		_ = s.set.Remove(p.link.Handle()) // it is open, and in the set
		p.interest = 0
	}
	s.forget(p)
	switch {
	case p.lingers(cause):
		p.keeper.leave()
	case p.rank == agent.NoRank || errors.Is(cause, agent.ErrProtocol):
		s.closed(p)
	}
}

// closed lets go of a link.
func (s *packetSwitch) closed(p *port) {
	s.ports[p.id] = nil
	p.stopTimer()
	_ = p.link.Close()
	s.agent.Closed(p.id, p.ended)
}

func (p *port) stopTimer() {
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.keeper != nil {
		p.keeper.timer.Stop()
	}
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
	wait := s.patience
	if p.keeper != nil {
		wait = p.keeper.limit
	}
	p.timer = time.AfterFunc(wait, func() {
		s.post(func() {
			if s.ports[l] == p {
				s.end(p, io.EOF)
				s.output()
			}
		})
	})
}

// attach makes a link part of the switch. It is called by the loop, or before
// the loop runs.
func (s *packetSwitch) attach(l link.Link, rank wire.WorldRank, host wire.HostRank) error {
	p := &port{id: agent.LinkID(len(s.ports)), link: l, rank: rank, host: host, interest: link.Readable, memory: l.Limits().Memory}
	h := l.Handle()
	if h == link.NoHandle {
		return errNoHandle
	}
	if err := s.set.Add(h, uint32(p.id), link.Readable); err != nil {
		return err
	}
	s.ports = append(s.ports, p)
	if unkept(l) {
		s.unkept = append(s.unkept, p)
	}
	if rank == agent.NoRank {
		return s.agent.AttachHost(p.id, host)
	}
	s.byRank[rank] = p
	return s.agent.AttachProc(p.id, rank)
}

// procDone is the proc's word that it has finished: all it sent is in its link.
func (s *packetSwitch) procDone(rank wire.WorldRank) {
	s.post(func() {
		p := s.byRank[rank]
		for p.ended == nil && s.unread(p) {
		}
		if s.ports[p.id] != p {
			return // it broke the protocol
		}
		if err := s.agent.ProcDone(rank); err == nil && p.ended != nil {
			s.closed(p)
		}
		s.output()
	})
}

// unread reads once and tells whether there may be more.
func (s *packetSwitch) unread(p *port) bool {
	n, err := p.link.Recv(s.agent.Input(p.id))
	if err == nil {
		err = s.agent.Received(p.id, n)
	}
	if err != nil {
		s.end(p, err)
	}
	return n > 0
}
