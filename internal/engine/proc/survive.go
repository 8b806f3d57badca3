package proc

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// Survival is what a proc knows of those that are lost in a job that goes on without them. Its
// methods may be called with nil, for a job that does not. The process's lock guards what mu does
// not.
//
// Of the procs of this job the nodes say which are lost. Those of other worlds that go on without
// procs, too, are known by the links to them: a proc has one to each with which it has a
// communicator, and whoever loses one tells all others.
type Survival struct {
	p      *Process
	lost   []message.Peer        // in the order in which this proc has learned of them
	broken []outsider            // not reported to any proc yet
	unmet  []*Comm               // with members in other worlds to which links must still be requested
	gone   map[message.Peer]bool // procs of other worlds that are in Finalize, or gone when this one is in it

	// Recovery receives the events that the package of communicators must know.
	Recovery Recovery
	notices  []notice // notices that are being received
	watch    map[wire.ContextID]func(message.Peer)

	mu    sync.Mutex
	comms map[wire.ContextID]*Comm // all communicators, by their first context ID
	freed map[wire.ContextID]bool
	fresh []*Comm // made since catchUp was called
}

// Recovery handles the messages and decisions of the procs that are left. The process is locked at
// all calls.
type Recovery interface {
	NoticeReceived(from message.Peer, text []byte) // a notice that another proc has sent by SendNotice
	Lost(peer message.Peer)
	Made(c *Comm) // a communicator about which notices may have come
	// ReportLost reports to the procs that may not know it that procs with consecutive numbers, all of
	// one world, are lost.
	ReportLost(first, last message.Peer, why string)
	// Waits calls wants with each proc that an agreement of this one waits for, and the communicator's
	// context.
	Waits(wants func(of message.Peer, context wire.ContextID))
}

// outsider is a proc of another world to which the link is gone.
type outsider struct {
	peer message.Peer
	why  string
}

type notice struct {
	r    *message.Request
	text []byte
	from message.Peer
}

// maxNotice is the most bytes of a notice. Longer ones are ignored: no proc sends any.
const maxNotice = 1 << 20

// The tags of messages in comm.SurvivalContext; their rank is the sender's in the world.
const (
	tagFinalize wire.Tag = iota
	tagNotice
)

// Watch makes the Survival call lost for each proc that is lost from now on, on behalf of a window
// in a context; with a nil lost it ends that.
func (s *Survival) Watch(context wire.ContextID, lost func(message.Peer)) {
	switch {
	case s == nil:
	case lost == nil:
		delete(s.watch, context)
	default:
		if s.watch == nil {
			s.watch = make(map[wire.ContextID]func(message.Peer))
		}
		s.watch[context] = lost
	}
}

// SendNotice sends a notice to another proc, which receives it in any call of MPI.
func (s *Survival) SendNotice(to message.Peer, text []byte) {
	env := message.Envelope{Context: comm.SurvivalContext, Rank: wire.CommRank(s.p.Job.Rank), Tag: tagNotice}
	s.p.Eng.Release(s.p.Endpoints.IsendBytes(to, env, text))
}

func (s *Survival) receiveNotices() (progress bool) {
	if s == nil || s.Recovery == nil {
		return false
	}
	env := message.Envelope{Context: comm.SurvivalContext, Rank: message.AnySource, Tag: tagNotice}
	for {
		m, st, ok := s.p.Eng.Take(env, message.NoPeer)
		if !ok {
			break
		}
		w := notice{text: make([]byte, min(st.Len, maxNotice)), from: st.Peer}
		w.r = s.p.Eng.RecvMessage(m, w.text)
		s.p.Endpoints.ReceivePosted(w.r)
		s.notices = append(s.notices, w)
	}
	for i := 0; i < len(s.notices); {
		w := s.notices[i]
		if !w.r.Done() {
			i++
			continue
		}
		err := w.r.Err()
		s.p.Eng.Release(w.r)
		s.notices = slices.Delete(s.notices, i, i+1)
		switch progress = true; {
		case err == nil && len(w.text) == 0: // the sender is in Finalize
			s.gone[w.from] = true
		case err == nil:
			s.Recovery.NoticeReceived(w.from, w.text)
		}
	}
	// Only now: who is taken for lost is told before links to it are closed.
	return s.loseBroken() || progress
}

// Comm returns the communicator of a context, or nil if it is not made here yet or was freed; freed
// reports which.
func (s *Survival) Comm(context wire.ContextID) (c *Comm, freed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.comms[context], s.freed[context]
}

// Comms returns all communicators, in the order of their contexts.
func (s *Survival) Comms() (list []*Comm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, context := range slices.Sorted(maps.Keys(s.comms)) {
		list = append(list, s.comms[context])
	}
	return list
}

// Lost returns the procs that are lost, in the order in which this proc has learned of them.
func (s *Survival) Lost() []message.Peer { return s.lost }

// Has reports whether a proc is lost. It may be called for nil, which has no lost procs.
func (s *Survival) Has(peer message.Peer) bool {
	return s != nil && peer != message.NoPeer && slices.Contains(s.lost, peer)
}

// enroll notes a communicator that is made, some of whose members may be lost.
func (s *Survival) enroll(c *Comm) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.comms[c.Context()] = c
	s.fresh = append(s.fresh, c)
	s.p.Node.news.Store(true) // catchUp needs the process's lock, which the caller may or may not have
}

func (s *Survival) unregister(c *comm.Comm) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.comms, c.Context())
	s.freed[c.Context()] = true
}

// catchUp gives up collective operations of communicators that were made with lost members.
func (s *Survival) catchUp() {
	if s == nil {
		return
	}
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	for _, c := range fresh {
		for _, peer := range s.lost {
			if c.HasMember(peer) {
				c.failCollectives(s.failed(peer, ""))
				break
			}
		}
		if s.Recovery != nil {
			s.Recovery.Made(c)
		}
		if c.Wide() {
			s.unmet = append(s.unmet, c)
		}
	}
	s.meet()
}

// Who returns what error messages call a proc, of this world or another one.
func (s *Survival) Who(peer message.Peer) string {
	ws := &s.p.Worlds
	switch {
	case !ws.Foreign(peer):
		return fmt.Sprintf("rank %d of MPI_COMM_WORLD", peer)
	case ws.WorldOf(comm.Proc(peer)) == nil:
		return "a proc of a job that is not connected any more"
	}
	return ws.Member(comm.Proc(peer)).String()
}

func (s *Survival) failed(peer message.Peer, reason string) error {
	if reason == "" {
		return fmt.Errorf("%w: %s", ErrProcFailed, s.Who(peer))
	}
	return fmt.Errorf("%w: %s (%s)", ErrProcFailed, s.Who(peer), reason)
}

// RevokedError is the error of operations in a communicator that was revoked.
func RevokedError(c *Comm) error { return fmt.Errorf("%w: %s", ErrRevoked, c.Label()) }

// mostReads bounds how much is read of a link whose other end is lost.
const mostReads = 1 << 16

// lose takes the node's word that procs are lost. What they had sent and what is here is received
// before.
func (s *Survival) lose(first, last wire.WorldRank, reason string) {
	if s == nil || first < 0 || int(last) >= s.p.Job.Size() {
		return
	}
	for r := first; r <= last; r++ {
		if peer := message.Peer(r); !s.Has(peer) && r != s.p.Job.Rank {
			s.losePeer(peer, s.failed(peer, reason))
		}
	}
	if s.Recovery != nil {
		s.Recovery.ReportLost(message.Peer(first), message.Peer(last), reason)
	}
	s.p.WakeAll()
}

// LoseOutsiders handles the report of other procs that procs of another world are lost, whose
// numbers are consecutive, and reports those that were not known to be lost.
func (s *Survival) LoseOutsiders(first, last message.Peer, why string) {
	for peer := first; peer <= last; peer++ {
		if !s.Has(peer) {
			s.broken = append(s.broken, outsider{peer, why})
		}
	}
	s.loseBroken()
}

// loseBroken loses the procs of other worlds to which links have broken, and tells of them.
func (s *Survival) loseBroken() (some bool) {
	broken := s.broken
	s.broken = nil
	slices.SortStableFunc(broken, func(a, b outsider) int { return int(a.peer - b.peer) })
	for i := 0; i < len(broken); {
		first, last, why := broken[i].peer, broken[i].peer, broken[i].why
		w := s.p.Worlds.WorldOf(comm.Proc(first))
		for i++; i < len(broken) && broken[i].peer <= last+1 && w != nil && w.has(comm.Proc(broken[i].peer)); i++ {
			last = broken[i].peer
		}
		if w == nil {
			continue // no communicator here has it any more
		}
		s.Recovery.ReportLost(first, last, why) // first, as those that live after all must hear of it before links to them end
		for peer := first; peer <= last; peer++ {
			if !s.Has(peer) {
				s.losePeer(peer, s.failed(peer, why))
			}
		}
		s.p.WakeAll()
		some = true
	}
	return some
}

// ReceivesNotices reports whether a proc receives notices of this one: it is of this job, or of a
// connected job that also continues without lost procs.
func (s *Survival) ReceivesNotices(peer message.Peer) bool {
	return !s.p.Worlds.Foreign(peer) || s.outlives(s.p.Worlds.WorldOf(comm.Proc(peer)))
}

// Linked reports whether there is a link to a proc of another world.
func (s *Survival) Linked(peer message.Peer) bool { return s.p.Endpoints.endpointOf(peer) != nil }

// AllReceiveNotices reports whether all members of a communicator receive each other's notices.
func (s *Survival) AllReceiveNotices(c *Comm) bool { return c.common == nil || c.common.Survive }

// outlives reports whether procs of a world go on without others, as this one does.
func (s *Survival) outlives(w *ConnectedWorld) bool {
	return s != nil && w != nil && w.Limits.Survive && !w.Leaving
}

// misses notes that the link to a proc of another world is gone, or could not be made, and reports
// whether that proc is lost by it: somebody here has a communicator with its world, which goes on
// without procs.
func (s *Survival) misses(peer message.Peer, why string) bool {
	if s == nil || s.Has(peer) {
		return false
	}
	if LifeState(s.p.State.Load()) >= Finalizing {
		s.gone[peer] = true
		return false
	}
	w := s.p.Worlds.WorldOf(comm.Proc(peer))
	if !s.outlives(w) || w.Uses.Load() == 0 || slices.ContainsFunc(s.broken, func(x outsider) bool { return x.peer == peer }) {
		return false
	}
	s.broke(peer, why)
	return true
}

// cares reports whether a communicator here has members of the world of a proc, and it goes on
// without procs.
func (s *Survival) cares(peer message.Peer) bool {
	w := s.p.Worlds.WorldOf(comm.Proc(peer))
	return s.outlives(w) && w.Uses.Load() > 0
}

// broke has a proc be lost soon.
func (s *Survival) broke(peer message.Peer, why string) {
	s.broken = append(s.broken, outsider{peer, why})
	s.p.Node.news.Store(true) // so that no goroutine sleeps before hear is called
}

// meet asks for links to the members of new communicators that are of other worlds, unless a
// meeting is under way, at which some do not know this world yet.
func (s *Survival) meet() {
	if s.p.Worlds.meetings > 0 {
		return
	}
	unmet := s.unmet
	s.unmet = nil
	for _, c := range unmet {
		if c.state.Life.Load() == Freed {
			continue
		}
		for _, peer := range s.outsiders(c) {
			if w := s.p.Worlds.WorldOf(comm.Proc(peer)); !w.opening[peer] && s.p.lifeChecks.suspected[peer] == nil && s.p.Endpoints.endpointOf(peer) == nil {
				s.p.Worlds.openForeign(peer)
			}
		}
	}
}

// outsiders returns the members of a communicator that are of other worlds which go on without
// procs, but for those that are lost.
func (s *Survival) outsiders(c *Comm) (list []message.Peer) {
	for _, g := range []*comm.Group{c.Comm.Group(), c.Remote()} {
		if g == nil {
			continue
		}
		for x := range g.All() {
			peer := message.Peer(x)
			if s.p.Worlds.Foreign(peer) && s.outlives(s.p.Worlds.WorldOf(x)) && !s.Has(peer) {
				list = append(list, peer)
			}
		}
	}
	return list
}

// Excluded ends this process, as the other procs continue without it.
func (s *Survival) Excluded(why string) {
	if LifeState(s.p.State.Load()) >= quiet {
		return // all others have passed the last agreement that needs it
	}
	s.p.Node.exit(ExitDown, fmt.Sprintf("rank %d: the others go on without this rank (%s); ending", s.p.Job.Rank, why))
}

func (s *Survival) losePeer(peer message.Peer, why error) {
	es := &s.p.Endpoints
	linked := es.endpointOf(peer)
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
	s.p.lifeChecks.mustKnow(peer, linked)
	s.p.lifeChecks.clearSuspicion(peer, why)
	s.p.Eng.PeerDown(peer, why)
	for _, c := range s.Comms() {
		if c.HasMember(peer) {
			c.failCollectives(why)
		}
	}
	for _, lost := range s.watch {
		lost(peer)
	}
	if s.Recovery != nil {
		s.Recovery.Lost(peer)
	}
}

// HasMember reports whether a proc is a member, on either side.
func (c *Comm) HasMember(peer message.Peer) bool {
	_, near := c.Comm.Group().Rank(comm.Proc(peer))
	_, far := c.Partners().Rank(comm.Proc(peer))
	return near || far
}

// failCollectives gives up the collective operations of a communicator with a lost member: those
// that go on and later ones. A member cannot know which of the others wait for the lost one.
func (c *Comm) failCollectives(why error) {
	p := c.p
	if p.Eng.Failed(c.CollectiveContext()) == nil {
		p.Eng.FailContext(c.CollectiveContext(), why)
	}
	if l := c.state.Local; l != nil && p.Eng.Failed(l.CollectiveContext()) == nil {
		p.Eng.FailContext(l.CollectiveContext(), why)
	}
}

// Unacknowledged returns why a receive from any source in a context may wait for a proc that is
// lost, or nil if the program has acknowledged all lost members of its communicator.
func (s *Survival) Unacknowledged(context wire.ContextID) error {
	if s == nil || len(s.lost) == 0 {
		return nil
	}
	c, _ := s.Comm(context)
	if c == nil {
		return nil
	}
	for _, peer := range s.lost[min(c.state.Acknowledged, len(s.lost)):] {
		if _, ok := c.Partners().Rank(comm.Proc(peer)); ok {
			return s.failed(peer, "")
		}
	}
	return nil
}

// doubt returns why a blocking receive does not wait any more.
func (s *Survival) doubt(r *message.Request) error {
	if s == nil || len(s.lost) == 0 || !r.Posted() {
		return nil
	}
	if _, peer := r.Side(); peer != message.NoPeer {
		return nil
	}
	return s.Unacknowledged(r.Context())
}

// pending is doubt for a receive that goes on.
func (s *Survival) pending(r *message.Request) error {
	if err := s.doubt(r); err != nil {
		return fmt.Errorf("%w: %w", ErrProcFailedPending, err)
	}
	return nil
}

// Barrier is the barrier of Finalize of a job that continues without procs that are lost: each proc
// waits for a word of each proc that is not lost, including procs of other worlds with which it has
// a communicator. A proc that has passed it needs nothing from the others any more.
func (s *Survival) Barrier() error {
	p := s.p
	p.Lock()
	defer p.Unlock()
	var open []*message.Request
	var others []message.Peer
	for _, c := range s.Comms() {
		for _, peer := range s.outsiders(c) {
			if !slices.Contains(others, peer) {
				others = append(others, peer)
				s.SendNotice(peer, nil)
			}
		}
	}
	for r := range p.Job.Size() {
		if peer := message.Peer(r); wire.WorldRank(r) != p.Job.Rank && !s.Has(peer) {
			env := message.Envelope{Context: comm.SurvivalContext, Rank: wire.CommRank(r), Tag: tagFinalize}
			open = append(open, p.Endpoints.IrecvBytes(env, peer, nil))
		}
	}
	for i := 1; i < p.Job.Size(); i++ {
		peer := message.Peer((int(p.Job.Rank) + i) % p.Job.Size()) // spreads the first messages over the procs
		env := message.Envelope{Context: comm.SurvivalContext, Rank: wire.CommRank(p.Job.Rank), Tag: tagFinalize}
		if !s.Has(peer) {
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
		p.Eng.Release(r) // ignored: a proc is lost, or the job has ended
	}
	waits := func(peer message.Peer) bool { return !s.gone[peer] && !s.Has(peer) }
	for (slices.ContainsFunc(others, waits) || len(s.p.lifeChecks.untold) > 0) && p.Failure == nil {
		p.AwaitProgress()
	}
	return p.Failure
}
