package proc

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

const (
	// napAfter is how long nothing may come before a proc that waits sleeps now and then. It is long,
	// as nothing wakes a proc for a message of the site's MPI.
	napAfter = 50 * time.Millisecond
	// nap is how long it sleeps then.
	nap = time.Millisecond
	// doze is how long it sleeps where other threads compute: a core that is offered to them comes
	// back only some milliseconds later, but a sleeper gets it at once, for other links as well.
	doze = 50 * time.Microsecond
)

// Native is the site's own MPI, with the links by it to other procs of the site. The process's lock
// guards it.
type Native struct {
	p         *Process
	library   *native.Library
	links     *native.Links
	first     wire.WorldRank // lowest of the site's ranks
	endpoints []*Endpoint    // by rank at the site; nil: no endpoint, or none any more
	oneThread bool           // at most one thread of the program is in MPI at a time
	several   bool           // oneThread stays false
	idle      bool           // no packets go by it: the site is on one machine, where shared memory is preferred
	since     time.Time      // when a poll first brought nothing; zero: the last one brought something
}

// UseNative makes p communicate with procs of its site by the site's own MPI, whose Init was
// called.
func (p *Process) UseNative(l *native.Library) {
	p.Lock()
	defer p.Unlock()
	p.Native = &Native{
		p: p, library: l, links: native.NewLinks(l), first: p.Job.Rank - wire.WorldRank(l.Rank),
		endpoints: make([]*Endpoint, l.Size),
	}
	site, own, machines := []wire.WorldRank(nil), p.Job.Proc(p.Job.Rank).Node, false
	for at := range l.Size {
		r := p.Native.first + wire.WorldRank(at)
		site, machines = append(site, r), machines || p.Job.Proc(r).Node != own
	}
	// On one host all procs get the same result. Of several hosts one may have transports that
	// others do not have.
	if p.Native.idle = !machines && !p.Native.Carries(site); !p.Native.idle {
		p.Native.links.BeginShortMessages()
		p.spin.SetUnwoken()
	}
}

// Carries reports whether packets to at least one of some procs of the site go by the site's MPI.
func (n *Native) Carries(procs []wire.WorldRank) bool {
	return slices.ContainsFunc(procs, func(r wire.WorldRank) bool { return n.p.Job.Proc(r).Path == wireup.PathNative })
}

// Idle reports whether no packets at all go by the site's MPI. It is the same at all procs of the
// site.
func (n *Native) Idle() bool { return n.idle }

// open makes a link to peer if packets to it go by the site's MPI. n may be nil.
func (n *Native) open(peer message.Peer) bool {
	if n == nil || n.p.Job.Proc(rank(peer)).Path != wireup.PathNative {
		return false
	}
	at := int(rank(peer) - n.first)
	if at < 0 || at >= len(n.endpoints) {
		return false
	}
	l, _ := n.links.Link(at)
	return n.add(l)
}

// add makes an endpoint of a link, which this proc or the other one has begun to use.
func (n *Native) add(l *native.Link) bool {
	peer := message.Peer(int(n.first) + l.Peer())
	q := &Endpoint{Peer: peer, native: true}
	q.Link = n.p.Trace.Traced(l, fmt.Sprintf("native to %d", peer), peer)
	if err := n.p.Endpoints.add(q); err != nil {
		n.p.SetFailed(err)
		return false
	}
	n.endpoints[l.Peer()] = q
	if _, ok := n.p.Eng.Route(peer); !ok {
		n.p.Endpoints.route(peer, q.ID)
	}
	if LifeState(n.p.State.Load()) >= quiet {
		q.CloseSend() // the other links were ended already
	}
	return true
}

func (n *Native) poll() (progress bool) {
	if n.idle {
		return false
	}
	ready, progress := n.links.Poll()
	if progress {
		n.p.WakeAll() // goroutines may wait for completed operations
	}
	for i := len(ready) - 1; i >= 0; i-- {
		at := ready[i].Peer()
		if n.endpoints[at] == nil && !n.add(ready[i]) {
			return true
		}
		if n.endpoints[at].Receive() {
			progress = true
		}
	}
	if progress {
		n.since = time.Time{}
	}
	return progress
}

// patience is how long to sleep until the site's MPI has to be asked again; negative: it does not.
// It offers the core to others.
func (n *Native) patience() time.Duration {
	if n.idle {
		return -1
	}
	now := time.Now()
	if n.since.IsZero() {
		n.since = now
	}
	switch {
	case now.Sub(n.since) >= napAfter:
		return nap
	case n.p.spin.Oversubscribed():
		return doze
	}
	polling.Yield()
	return 0
}

// Finalize ends the site's MPI once nothing is under way any more, together with the other procs of
// the site.
func (n *Native) Finalize() error {
	for !n.links.Idle() {
		polling.Yield()
	}
	return n.library.Finalize()
}

// NativeComm is a communicator of the site's MPI: it contains the members of one of our
// communicators that are at the site, in the order of their ranks.
type NativeComm struct {
	Size    int
	Planner *coll.Planner // a planner with phases of the site's MPI
	comm    native.Comm
}

// Has reports whether the site's launcher has started a proc together with this one.
func (n *Native) Has(r wire.WorldRank) bool {
	at := int(r - n.first)
	return at >= 0 && at < len(n.endpoints)
}

// NewComm makes a communicator of the site's MPI. All its procs call it at a time when none of them
// waits for another one. id is the same at all of them, and differs between communicators that are
// made at the same time.
func (n *Native) NewComm(procs []wire.WorldRank, id uint64) (*NativeComm, error) {
	n.p.Lock()
	defer n.p.Unlock()
	ranks := make([]int32, len(procs))
	for i, r := range procs {
		ranks[i] = int32(r - n.first)
	}
	c, err := n.library.Open(ranks, int(id%maxTag))
	if err != nil {
		return nil, err
	}
	if at := n.fastPathComm(c); at != nil {
		at.Drop() // another team had the number
	}
	return &NativeComm{Size: len(procs), comm: c}, nil
}

// maxTag is the smallest upper bound of tags that MPI allows (MPI-4.1, 9.1.2).
const maxTag = 1 << 15

// Begin begins a collective operation of a team, which its caller waits for, or continues one that
// C has begun. The process is locked.
func (n *Native) Begin(t *NativeComm, ph *native.Phase) error {
	at := n.fastPathComm(t.comm)
	if at == nil || at.Pending == fastpath.None && at.Error == 0 {
		return n.links.Begin(t.comm, ph)
	}
	number, failed := at.Pending, at.Error
	at.Pending, at.Error = fastpath.None, 0
	return n.links.AwaitPhase(number, failed, ph)
}

// fastPathComm is what C knows of a team, or nil if C does nothing there.
func (n *Native) fastPathComm(c native.Comm) *fastpath.NativeComm {
	if n.p.FastPath == nil || c < 0 || c >= fastpath.Teams {
		return nil
	}
	return &n.p.FastPath.Teams[c]
}

// number is that of the team in which C does operations of c, or None. n may be nil.
func (n *Native) number(c *Comm) int32 {
	cs := &c.state.Colls
	if n == nil || !cs.NativeSettled.Load() || cs.NativeComm == nil || cs.OnBoard != nil || cs.NativeComm.Size != c.Size() || n.fastPathComm(cs.NativeComm.comm) == nil {
		return fastpath.None
	}
	return int32(cs.NativeComm.comm)
}

// Count counts the operations of c that C has done by the site's MPI, so that all members have the
// same count. n may be nil.
func (n *Native) Count(c *Comm) {
	cs := &c.state.Colls
	if n == nil || !cs.NativeSettled.Load() || cs.NativeComm == nil {
		return
	}
	if at := n.fastPathComm(cs.NativeComm.comm); at != nil {
		cs.number.Add(uint64(at.Count.Swap(0)))
	}
}

// OneThread reports whether at most one thread of the program is in MPI at a time.
func (n *Native) OneThread() bool {
	n.p.Lock()
	defer n.p.Unlock()
	return n.oneThread
}

// OneThread records that at most one thread of the program is in MPI at a time.
func OneThread() { threads(true) }

// SeveralThreads undoes OneThread, for ever.
func SeveralThreads() { threads(false) }

func threads(one bool) {
	if p, err := Current(); err == nil && p.Native != nil {
		p.Lock()
		defer p.Unlock()
		p.Native.oneThread = one && !p.Native.several
		p.Native.several = p.Native.several || !one
	}
}

// Leave frees a team. All its procs do so.
func (n *Native) Leave(t *NativeComm) {
	n.p.Lock()
	defer n.p.Unlock()
	if err := n.library.CloseComm(t.comm); err != nil {
		n.p.SetFailed(err)
	}
}
