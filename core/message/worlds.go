package message

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/wire"
)

// ConnectedWorld describes the procs of another job to which this one has connected, by
// MPI_Comm_connect, accept or spawn (MPI-4.1, 11.9). Packets to and from them use links of their
// own, and identities other than those in the job itself, which may be the same in two jobs.
type ConnectedWorld struct {
	Host wire.HostID // host ID of all of them; their pids are their ranks, from 0
	Size int
	Self wire.Proc // identity of this proc for the other world

	// The values that apply to both jobs; see Config.
	MaxData          uint32
	AckMark, HiWater uint32

	Allows bool // both jobs support allowances; each proc begins with the least allowance
}

// worldTerms are the limits that hold between this proc and the procs of one world.
type worldTerms struct {
	self    wire.Proc
	maxData int64
	limits  flow.Limits
	allows  bool
}

func (s *worldTerms) check() error {
	if err := s.limits.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if s.maxData < 1 || s.maxData > math.MaxInt32 {
		return fmt.Errorf("%w: data length %d, must be 1 to %d", ErrConfig, s.maxData, math.MaxInt32)
	}
	return nil
}

// met is a World after AddWorld, with its place in the table of peers.
type met struct {
	first Peer
	size  int32
	host  wire.HostID
	worldTerms
}

// allowance returns what all its procs may have here at any time.
func (m *met) allowance() int64 {
	if !m.allows {
		return 0
	}
	return int64(m.size) * leastAllowance
}

// AddWorld adds the procs of a world to the table: rank r is Peer first+r. The numbers were
// never used for another world.
func (e *procs) AddWorld(w ConnectedWorld) (first Peer, err error) {
	m := &met{
		first: e.next, host: w.Host,
		worldTerms: worldTerms{w.Self, int64(w.MaxData), flow.Limits{AckMark: w.AckMark, HiWater: w.HiWater}, w.Allows},
	}
	if err := m.check(); err != nil {
		return NoPeer, err
	}
	if w.Size < 1 || w.Size > math.MaxInt32-int(e.next) {
		return NoPeer, fmt.Errorf("%w: a world of %d procs after %d", ErrConfig, w.Size, e.next)
	}
	m.size = int32(w.Size)
	e.next += Peer(w.Size)
	e.worlds = append(e.worlds, m)
	e.pool.size -= m.allowance()
	return m.first, nil
}

// ForgetWorld removes the world whose first proc is first from the table, when the two jobs have
// disconnected (MPI-4.1, 11.10.4). Its links must have been detached. Requests that wait for its
// procs fail, and unexpected messages from them are dropped.
func (e *Engine) ForgetWorld(first Peer) {
	w := e.worldOf(first)
	if w == nil || w.first != first {
		panic(fmt.Sprintf("message: peer %d is not the first of a world", first))
	}
	for _, p := range slices.Clone(e.peers.made) {
		if p.as != &w.worldTerms {
			continue
		}
		if p.link != nil {
			panic(fmt.Sprintf("message: peer %d of a world to be forgotten has link %d", p.index, p.link.id))
		}
		e.PeerDown(p.index, errForgotten)
		e.giveBack(p)
		e.lost--
	}
	for m := range e.unexpected.All() {
		if m.peer.as == &w.worldTerms {
			e.lose(m)
		}
	}
	e.peers.remove(func(p *peer) bool { return p.as == &w.worldTerms })
	e.pool.size += w.allowance()
	e.worlds = slices.DeleteFunc(e.worlds, func(m *met) bool { return m == w })
}

// ResetPeer resets the state of a proc of another world, whose link has been detached, to that of a
// proc with which nothing was ever exchanged. Requests that wait for the proc fail.
func (e *Engine) ResetPeer(p Peer) {
	q := e.peers.find(p)
	if q == nil {
		return
	}
	if e.worldOf(p) == nil || q.link != nil {
		panic(fmt.Sprintf("message: peer %d of the job, or with a link, cannot be renewed", p))
	}
	e.PeerDown(p, errForgotten)
	e.giveBack(q)
	e.lost--
	e.peers.remove(func(x *peer) bool { return x == q })
}

// worldOf returns the world of a peer, nil if the peer is not in the table or belongs to
// the job.
func (e *procs) worldOf(p Peer) *met {
	i := sort.Search(len(e.worlds), func(i int) bool { return p < e.worlds[i].first+Peer(e.worlds[i].size) })
	if i == len(e.worlds) || p < e.worlds[i].first {
		return nil
	}
	return e.worlds[i]
}

func (e *procs) identity(p Peer) (wire.Proc, *worldTerms) {
	if p >= 0 && int(p) < e.directory.Len() {
		return e.directory.Proc(p), &e.own
	}
	w := e.worldOf(p)
	if w == nil {
		panic(fmt.Sprintf("message: no peer %d: the job has %d, and worlds that were met end at %d", p, e.directory.Len(), e.next))
	}
	return wire.Proc{Host: w.host, PID: int64(p - w.first)}, &w.worldTerms
}
