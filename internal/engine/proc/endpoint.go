package proc

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	// lendShared is the least number of bytes that are lent where procs share cores.
	lendShared = 128 << 10
	// grace is how long a broken link is kept from the program: see broke.
	grace = 2 * time.Second
	// holdBack is how many bytes of Isends are gathered before they are written: a
	// series of them goes up to a half faster over TCP in few long writes;
	// holdBackMemory is as many, headers included, where writing costs so little
	// that the receiver had better begin.
	holdBack       = 256 << 10
	holdBackMemory = 1 << 10
)

// Endpoint is a link of this proc, with the state of its output.
type Endpoint struct {
	drive.Endpoint
	p         *Process
	ID        message.LinkID
	Peer      message.Peer      // message.NoPeer for the agent
	lender    link.Lender       // Link, if it can borrow memory
	fastBoxes bool              // the link takes fast-box messages
	lent      bool              // a part of the last output is lent to the link
	ended     bool              // this side has ended the link: nothing is written any more
	burst     bool              // an Isend was written since the program waited last
	awaited   bool              // a blocking send waits for the current output
	held      int               // bytes of Isends that are held back
	terms     *wireup.Resumable // of a link that resumes, from the node
	frames    *resumable.Link   // the link that resumes, unless it is traced
	native    bool              // the link is by the site's own MPI: Process.Native drives it

	before struct{ sent, received uint64 } // initial counts of a link that counts by itself: a ring counts for all its owners

	// State of links to procs of other worlds:
	away      *wireup.Message // with which the node is asked for a further connection; nil: the peer is of this world
	closing   closeState
	said      *message.Request // a wordClose that is being sent
	forgotten bool             // the node knows that another link may be made

	superseded bool // another link has replaced it
}

type counter interface {
	Counts() (sent, received uint64)
}

// endpoints are the links of this proc, including those that have broken.
type endpoints struct {
	p          *Process
	List       []*Endpoint      // by message.LinkID; nil once closed
	vacant     []message.LinkID // IDs of closed links to other worlds, for reuse
	resumables []*Endpoint      // links that resume, also closed ones
	lent       int              // number of resumables that have borrowed output
	front      [][]byte         // scratch memory of keepLent
	deferred   bool             // some endpoint holds back output of Isends
	Flusher    machine.Timer    // writes output that is held back if the program does not call MPI soon
	Armed      bool             // Flusher is running
	Grace      time.Duration    // grace, or another time in tests
	sent       uint64           // bytes by direct links that have ended, as far as these count them
	received   uint64
	breaks     []brokenLink // links that broke and are kept from the program
	lost       error        // why the link to the agent has ended
}

// Add makes an endpoint of link l, which carries packets of peer only, or of all procs for NoPeer.
func (es *endpoints) Add(l link.Link, peer message.Peer) (*Endpoint, error) {
	q := &Endpoint{Peer: peer}
	q.Link = l
	return q, es.add(q)
}

// add starts to use q, whose link and peer are set.
func (es *endpoints) add(q *Endpoint) error {
	q.p, q.ID = es.p, message.LinkID(len(es.List))
	if c, ok := q.Link.(counter); ok {
		q.before.sent, q.before.received = c.Counts()
	}
	n := len(es.vacant)
	if n > 0 {
		q.ID = es.vacant[n-1]
	}
	if !q.native {
		if err := es.p.Driver.Add(&q.Endpoint, uint32(q.ID), q); err != nil {
			return err
		}
	}
	if n > 0 {
		es.vacant, es.List[q.ID] = es.vacant[:n-1], q
	} else {
		es.List = append(es.List, q)
	}
	if q.Peer == message.NoPeer {
		es.p.Eng.Attach(q.ID)
	} else {
		es.p.Eng.AttachPeer(q.ID, q.Peer)
		if !q.native {
			es.p.Driver.MakeHot(&q.Endpoint)
		}
	}
	q.lender, _ = q.Link.(link.Lender)
	if r, ok := q.Link.(link.Recaller); ok {
		es.p.Eng.FillsInput(q.ID, recaller{r, es.p})
	}
	if m, ok := q.Link.(link.Memory); ok {
		q.InPlace = m
		es.p.Eng.InPlace(q.ID, m)
	}
	// A fast-box message does not name its sender, so it needs a direct link; packets of the draft
	// contain more than a fast-box message can.
	takes := q.Peer != message.NoPeer && es.p.Job.Dialect != wire.Draft
	if n, ok := q.Link.(link.FastBoxLink); ok && takes && n.TakeFastBoxes() {
		q.fastBoxes = true
		es.p.Eng.UseFastBoxes(q.ID, n)
		if es.p.FastPath != nil {
			es.p.FastPath.join(es.p, q)
		}
	}
	return nil
}

// recaller recalls memory from a link. That takes note of what has come by it, which a goroutine that
// sleeps does not see.
type recaller struct {
	link link.Recaller
	p    *Process
}

// Recall implements message.Recaller.
func (r recaller) Recall() {
	r.link.Recall()
	r.p.WakeAll()
}

// Flush writes the engine's output for q until all is written or the link is full, and reports
// whether anything was written.
func (q *Endpoint) Flush() (progress bool) {
	p := q.p
	q.held, q.Full = 0, false
	for q.Due() {
		out := p.Eng.Output(q.ID)
		if q.InPlace != nil && q.InPlace.Commit() {
			progress = true
			if len(out) == 0 {
				continue
			}
		}
		n, err := q.write(out)
		short := n < link.Len(out) // computed before Sent, which reuses out
		q.Full = short
		if q.Resumable != nil && q.lent {
			q.Full = q.Resumable.HasUnsent()
		}
		if n > 0 {
			p.Eng.Sent(q.ID, n)
			progress = true
		}
		if err != nil {
			q.Drop(err)
			return true
		}
		if q.Full {
			if p.Asleep && (q.native || !p.Driver.Rearm(&q.Endpoint)) { // makes the driver wake up when q has room again
				p.WakeAll()
			}
			break
		}
		if short && n == 0 {
			break
		}
	}
	return progress
}

// Due reports whether Flush has something to do. It may be false for a resumable link to which all
// output was lent: it only waits.
func (q *Endpoint) Due() bool {
	if q.ended || !q.p.Eng.HasOutput(q.ID) {
		return false
	}
	r := q.Resumable
	return r == nil || !q.lent || r.CanReturn() || r.HasUnsent() || q.p.Eng.HasNewOutput(q.ID)
}

// write gives output to the link. The engine leaves it where it is until it is sent, so it may be
// lent. The lender has to wait until the receiver runs, which costs more than a copy if the
// receiver waits for a core.
func (q *Endpoint) write(out [][]byte) (int, error) {
	p := q.p
	n := link.Len(out)
	if q.Resumable != nil {
		return q.writeResumable(out, n)
	}
	if q.lender == nil || !q.lent && n < lendShared && p.spin.Shared() {
		return q.Link.Send(out)
	}
	k, err := q.lender.Lend(out)
	q.lent = k < n
	return k, err
}

// writeResumable is write for a resumable link, which need not copy what the engine keeps until
// it is acknowledged.
func (q *Endpoint) writeResumable(out [][]byte, size int) (n int, err error) {
	p := q.p
	switch {
	case !q.lent && size < lendResumable, !q.lent && q.awaited && size < lendBlocking, q.lender == nil, p.Eng.PacksPiecewise(q.ID):
		if q.frames != nil {
			n, err = q.frames.Send(out)
		} else {
			n, err = q.Link.Send(out)
		}
	default:
		n, err = q.lender.Lend(out)
	}
	if q.lent || n < size {
		q.setLent(q.Resumable.Lending())
	}
	return n, err
}

// FlushAll flushes all endpoints, also those whose link was full: only that finds out whether a
// link has room again.
func (es *endpoints) FlushAll() (progress bool) {
	es.deferred = false
	for _, q := range es.List {
		if q == nil {
			continue
		}
		q.burst = false
		if q.Due() && q.Flush() {
			progress = true
		}
	}
	return progress
}

// Receive reads q and reports whether anything has come.
func (q *Endpoint) Receive() (progress bool) {
	p := q.p
	if q.InPlace != nil {
		var all bool
		if progress, all = q.takeInPlace(); all {
			return progress
		}
	} else if q.fastBoxes {
		var err error
		if progress, err = p.Eng.TakeFastBoxes(q.ID); err != nil {
			q.Drop(err)
			return true
		}
	}
	if q.frames != nil && !q.lent {
		var all bool
		if progress, all = q.takeFrames(); all {
			return progress
		}
	}
	for i := 0; q.Reads(i); i++ {
		in := p.Eng.Input(q.ID)
		n, err := q.Link.Recv(in)
		if n > 0 {
			progress = true
			whole := n == link.Len(in) // computed before Received, which reuses in
			if perr := p.Eng.Received(q.ID, n); perr != nil {
				q.Drop(perr)
				return true
			}
			if whole && err == nil {
				continue
			}
		}
		if err != nil {
			q.Drop(err)
			return true
		}
		if !q.Buffered() {
			return progress
		}
	}
	return progress
}

// takeFrames handles complete packets, or the beginning of a long one, in the buffer of a resumable
// link. It reports whether there were any, and whether that was all.
func (q *Endpoint) takeFrames() (progress, all bool) {
	p := q.p
	for range drive.MaxReads {
		data, whole, more := q.frames.Peek()
		if len(data) == 0 {
			return progress, !more
		}
		var n int
		var err error
		if whole {
			n, err = p.Eng.Arrived(q.ID, data)
		} else {
			n, err = p.Eng.Begun(q.ID, data)
		}
		progress = progress || n > 0
		buffered := q.frames.Discard(n)
		switch {
		case err != nil:
			q.Drop(err)
			return true, true
		case !whole, n < len(data):
			return progress, false
		case !buffered:
			return progress, true
		}
	}
	return progress, false
}

// ahead reports whether something other than a fast-box message comes, which has to be received by
// Receive.
func (q *Endpoint) ahead() bool {
	if l, ok := q.Link.(*native.Link); ok {
		return q.p.Native.links.LookForStream(l)
	}
	poll.Pause()
	return q.InPlace.Ready()
}

// takeInPlace handles fast-box messages and complete packets in the link's memory. It reports
// whether there were any, and whether that was all that had come.
func (q *Endpoint) takeInPlace() (progress, all bool) {
	p := q.p
	if q.fastBoxes {
		var err error
		if progress, err = p.Eng.TakeFastBoxes(q.ID); err != nil {
			q.Drop(err)
			return true, true
		}
	}
	b := q.InPlace.Peek()
	if len(b) == 0 {
		return progress, progress
	}
	n, err := p.Eng.Arrived(q.ID, b)
	q.InPlace.Discard(n)
	if err != nil {
		q.Drop(err)
		return true, true
	}
	return progress || n > 0, n == len(b)
}

// Drop closes the endpoint because of cause. The engine then fails requests that need it.
func (q *Endpoint) Drop(cause error) {
	p := q.p
	if p.Endpoints.List[q.ID] != q {
		return
	}
	p.Endpoints.List[q.ID] = nil
	p.Driver.Remove(&q.Endpoint)
	q.setLent(false)
	if p.FastPath != nil {
		p.FastPath.leave(q)
	}
	if sent, received, ok := q.counted(); ok && q.Peer != message.NoPeer {
		p.Endpoints.sent += sent
		p.Endpoints.received += received
	}
	_ = q.Link.Close()
	if errors.Is(cause, io.EOF) {
		cause = fmt.Errorf("%w: %s closed it", ErrPeerGone, q.who())
	}
	cause = fmt.Errorf("link to %s: %w", q.who(), cause)
	if p.Worlds.Foreign(q.Peer) {
		q.loseForeign(cause)
		return
	}
	q.broke(cause)
}

// counted returns the bytes that the link has sent and received since it came here, if it counts
// them.
func (q *Endpoint) counted() (sent, received uint64, ok bool) {
	c, ok := q.Link.(counter)
	if !ok {
		return 0, 0, false
	}
	sent, received = c.Counts()
	return sent - q.before.sent, received - q.before.received, true
}

// GiveUp fails all requests that need q. A proc cannot continue without its agent, even in Finalize:
// the agent stays until the node has learned that the proc has finished.
func (q *Endpoint) GiveUp(cause error) {
	p := q.p
	if errors.Is(cause, native.ErrFailed) && LifeState(p.State.Load()) < quiet {
		// The fault is not at the other end. The node would take what this proc says next for a
		// consequence of a lost link, and the end of the launcher for its cause.
		p.SetFailed(cause)
	} else {
		q.tellLost(cause)
	}
	p.Eng.Detach(q.ID, cause)
	p.WakeAll() // wakes goroutines in probes, too
	if q.Peer == message.NoPeer && LifeState(p.State.Load()) < Ended {
		p.Endpoints.lost = cause
		p.SetFailed(cause)
	}
}

// route has packets to peer leave by l, unless that is the agent's link and the agent is lost.
func (es *endpoints) route(peer message.Peer, l message.LinkID) {
	if l == AgentLink && es.lost != nil {
		es.p.Eng.PeerDown(peer, es.lost)
		return
	}
	es.p.Eng.SetRoute(peer, l)
}

func (q *Endpoint) who() string {
	p := q.p
	if q.Peer == message.NoPeer {
		return "the agent"
	}
	if g := p.Worlds.Remotes[q.Peer]; g != nil {
		return "the other side of a port"
	}
	if p.Worlds.Foreign(q.Peer) {
		return p.Worlds.Member(comm.Proc(q.Peer)).String()
	}
	return fmt.Sprintf("rank %d", q.Peer)
}

func (es *endpoints) findRoutes() {
	for {
		peer, ok := es.p.Eng.Unrouted()
		if !ok {
			return
		}
		if es.p.Worlds.Foreign(peer) {
			es.p.Worlds.openForeign(peer)
		} else if es.p.Native.open(peer) {
			continue
		} else if !es.openDirect(peer) {
			es.route(peer, AgentLink)
		}
	}
}

// rank converts a peer of this job to a world rank: they have the same numbers.
func rank(peer message.Peer) wire.WorldRank { return wire.WorldRank(peer) }

type brokenLink struct {
	q     *Endpoint
	cause error
}

// broke handles a link of this job that has ended. Usually a proc has died, and the node ends this
// one within moments, with a message that names it. So the program is told only after grace, to
// keep it from reporting consequences. In Finalize a peer may have passed the barrier earlier and
// ended the link, which looks the same as if it had died.
func (q *Endpoint) broke(cause error) {
	p := q.p
	if p.Survival.Has(q.Peer) {
		p.Eng.Detach(q.ID, cause)
		p.WakeAll()
		return
	}
	at := LifeState(p.State.Load())
	inOrder := at >= quiet || q.Peer == message.NoPeer && at == Finalizing
	if p.Node.Control == nil || inOrder || errors.Is(cause, message.ErrProtocol) {
		q.GiveUp(cause)
		return
	}
	p.Endpoints.breaks = append(p.Endpoints.breaks, brokenLink{q, cause})
	p.Machine.AfterFunc(p.Endpoints.Grace, func() {
		p.Lock()
		defer p.Unlock()
		i := slices.IndexFunc(p.Endpoints.breaks, func(b brokenLink) bool { return b.q == q })
		switch {
		case i < 0:
		case p.Survival != nil: // the node reports that the peer is lost, or ends the job
			q.tellLost(cause)
		default:
			p.Endpoints.breaks = slices.Delete(p.Endpoints.breaks, i, i+1)
			q.GiveUp(cause)
		}
	})
}

// BarrierPassed is called when the barrier of Finalize is passed: broken links are dropped at once
// then, since no proc needs anything any more.
func (es *endpoints) BarrierPassed() {
	es.p.Lock()
	defer es.p.Unlock()
	es.p.State.Store(int32(quiet))
	breaks := es.breaks
	es.breaks = nil
	for _, b := range breaks {
		b.q.GiveUp(b.cause)
	}
	es.p.lifeChecks.clearSuspicions()
}

// tellLost tells the node that a link to a proc of this job is lost, before the program is told: if
// this proc fails now, that may be only a consequence, and if the program notices nothing, the job
// has to end all the same.
func (q *Endpoint) tellLost(cause error) {
	p := q.p
	if p.Node.Control == nil || q.Peer == message.NoPeer || p.Worlds.Foreign(q.Peer) || LifeState(p.State.Load()) >= quiet {
		return
	}
	inOrder := LifeState(p.State.Load()) == Finalizing && errors.Is(cause, ErrPeerGone)
	_ = p.Node.Control.Send(wireup.Message{Kind: wireup.KindLost, Peer: rank(q.Peer), Reason: cause.Error(), InOrder: inOrder}) // without a node no process is informed
}
