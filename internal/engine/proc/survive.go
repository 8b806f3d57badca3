package proc

import (
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// survival is what a proc knows of those that are lost in a job that goes on without them. Its methods
// may be called with nil, for a job that does not. The process's lock guards what mu does not.
type survival struct {
	p    *Process
	lost []message.Peer // in the order in which this proc has heard of them

	mu    sync.Mutex
	comms map[wire.ContextID]*Comm // all communicators, by their first context ID
	fresh []*Comm                  // made since catchUp was called
}

// The tags of messages in comm.SurvivalContext; their rank is the sender's in the world.
const tagFinalize wire.Tag = 0

// has reports whether a proc is lost.
func (s *survival) has(peer message.Peer) bool {
	if s == nil || peer == message.NoPeer {
		return false
	}
	for _, x := range s.lost {
		if x == peer {
			return true
		}
	}
	return false
}

// enroll notes a communicator that is made, some of whose members may be lost.
func (s *survival) enroll(c *Comm) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.comms[c.Context()] = c
	s.fresh = append(s.fresh, c)
	s.p.Node.news.Store(true) // catchUp is called with the process's lock, which the caller may have or not
}

// strike forgets a communicator that is freed.
func (s *survival) strike(c *comm.Comm) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.comms, c.Context())
}

// catchUp gives up collective operations of communicators that were made with lost members.
func (s *survival) catchUp() {
	if s == nil {
		return
	}
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	for _, c := range fresh {
		for _, peer := range s.lost {
			if c.holds(peer) {
				c.failCollectives(failedError(peer, ""))
				break
			}
		}
	}
}

// failedError is the error of operations that need a lost proc.
func failedError(peer message.Peer, reason string) error {
	if reason == "" {
		return fmt.Errorf("%w: rank %d of MPI_COMM_WORLD", ErrProcFailed, peer)
	}
	return fmt.Errorf("%w: rank %d of MPI_COMM_WORLD (%s)", ErrProcFailed, peer, reason)
}

// mostReads bounds how much is read of a link whose other end is lost.
const mostReads = 1 << 16

// lose takes the node's word that procs are lost. What they had sent and what is here is received
// before.
func (s *survival) lose(first, last wire.WorldRank, reason string) {
	if s == nil || first < 0 || int(last) >= s.p.Job.Size() {
		return
	}
	for r := first; r <= last; r++ {
		if peer := message.Peer(r); !s.has(peer) && r != s.p.Job.Rank {
			s.losePeer(peer, failedError(peer, reason))
		}
	}
	s.p.WakeAll()
}

func (s *survival) losePeer(peer message.Peer, why error) {
	es := &s.p.Endpoints
	for _, q := range es.List {
		for i := 0; i < mostReads && q != nil && q.Peer == peer && es.List[q.ID] == q && q.Receive(); i++ {
		}
	}
	s.lost = append(s.lost, peer)
	for _, q := range es.List {
		if q != nil && q.Peer == peer {
			q.Drop(why)
		}
	}
	breaks := es.breaks
	es.breaks = nil
	for _, b := range breaks {
		if b.q.Peer == peer {
			s.p.Eng.Detach(b.q.ID, why)
		} else {
			es.breaks = append(es.breaks, b)
		}
	}
	s.p.Eng.PeerDown(peer, why)
	s.mu.Lock()
	var with []*Comm
	for _, c := range s.comms {
		if c.holds(peer) {
			with = append(with, c)
		}
	}
	s.mu.Unlock()
	for _, c := range with {
		c.failCollectives(why)
	}
}

// holds reports whether a proc is a member, on whichever side.
func (c *Comm) holds(peer message.Peer) bool {
	_, near := c.Comm.Group().Rank(comm.Proc(peer))
	_, far := c.Partners().Rank(comm.Proc(peer))
	return near || far
}

// failCollectives gives up the collective operations of a communicator with a lost member: those that go
// on and later ones. A member cannot know which of the others wait for the lost one.
func (c *Comm) failCollectives(why error) {
	p := c.p
	if p.Eng.Failed(c.CollectiveContext()) == nil {
		p.Eng.FailContext(c.CollectiveContext(), why)
	}
	if l := c.state.Local; l != nil && p.Eng.Failed(l.CollectiveContext()) == nil {
		p.Eng.FailContext(l.CollectiveContext(), why)
	}
}

// Unacknowledged returns why a receive from any source in a context may wait for a proc that is lost; nil
// if the program knows of all lost members of its communicator.
func (s *survival) Unacknowledged(context wire.ContextID) error {
	if s == nil || len(s.lost) == 0 {
		return nil
	}
	s.mu.Lock()
	c := s.comms[context]
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	for _, peer := range s.lost[min(c.state.Acknowledged, len(s.lost)):] {
		if _, ok := c.Partners().Rank(comm.Proc(peer)); ok {
			return failedError(peer, "")
		}
	}
	return nil
}

// doubt returns why a blocking receive does not wait any more.
func (s *survival) doubt(r *message.Request) error {
	if s == nil || len(s.lost) == 0 || !r.Posted() {
		return nil
	}
	if _, peer := r.Side(); peer != message.NoPeer {
		return nil
	}
	return s.Unacknowledged(r.Context())
}

// pending is doubt for a receive that goes on.
func (s *survival) pending(r *message.Request) error {
	if err := s.doubt(r); err != nil {
		return fmt.Errorf("%w: %w", ErrProcFailedPending, err)
	}
	return nil
}

// Barrier is the barrier of Finalize of a job that goes on without procs that are lost: each waits for a
// word of each that is not. Whoever has passed it needs nothing of the others any more.
func (s *survival) Barrier() error {
	p := s.p
	p.Lock()
	defer p.Unlock()
	var open []*message.Request
	for r := range p.Job.Size() {
		if peer := message.Peer(r); wire.WorldRank(r) != p.Job.Rank && !s.has(peer) {
			env := message.Envelope{Context: comm.SurvivalContext, Rank: wire.CommRank(r), Tag: tagFinalize}
			open = append(open, p.Endpoints.IrecvBytes(env, peer, nil))
		}
	}
	for i := 1; i < p.Job.Size(); i++ {
		peer := message.Peer((int(p.Job.Rank) + i) % p.Job.Size()) // not all at one first
		env := message.Envelope{Context: comm.SurvivalContext, Rank: wire.CommRank(p.Job.Rank), Tag: tagFinalize}
		if !s.has(peer) {
			open = append(open, p.Endpoints.IsendBytes(peer, env, nil))
		}
	}
	for _, r := range open {
		for !r.Done() && p.Failure == nil {
			p.AwaitProgress()
		}
		if !r.Done() {
			return p.Failure
		}
		p.Eng.Release(r) // an error is that of a lost proc, or that of the job
	}
	return p.Failure
}
