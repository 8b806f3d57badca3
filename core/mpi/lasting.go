package mpi

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/lasting"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
)

// How long until lasting links are looked after by a timer: where somebody is to
// answer, where bytes are pending, where a link below is to come, and always. A
// program that computes makes no progress, and its links break nevertheless.
const (
	tendAnswer  = 250 * time.Microsecond
	tendPending = time.Millisecond
	tendApart   = 10 * time.Millisecond
	tendAlways  = 100 * time.Millisecond
)

const (
	// slack is how long the end that asks for connections waits for its node's
	// word that there is none, beyond the node's own limit.
	slack = 3 * time.Second
	// farewell is how long a link whose bytes have all come waits to be resumed for
	// the peer's word that ours have. The peer may be content, and gone.
	farewell = 2 * time.Second
	// notice is how long the end that is dialled waits until it has the other one
	// told, which mostly has noticed, too.
	notice = 100 * time.Millisecond
	// remind is how long it waits until it does so again.
	remind = time.Second
)

// nursery has the lasting links of a process.
type nursery struct {
	keepers []*keeper
	timer   machine.Timer // nil before the first link
	pace    atomic.Int64  // nanoseconds between its calls
	soon    bool          // it was made to come soon, for pending bytes
	owed    bool          // a link owes bytes that were lent to it
	lent    int           // ports of which some output is lent
}

// keeper is a lasting link and what is done to keep it. It is the link of a port,
// perhaps with a tracer around it.
type keeper struct {
	*lasting.Link
	p     *process
	q     *port
	terms wireup.Lasting

	apart   bool      // there is no link below
	made    int       // links below before that
	since   time.Time // of apart
	why     error     // why the last link below was lost
	asked   bool      // the node is to make one, or to have the peer's make one
	told    time.Time // when it was asked
	ended   bool      // the user has all of the peer's bytes
	leaving bool      // and has closed the link
	front   [][]byte  // for keepLent
}

// keep makes a port of the first link below a lasting link.
func (p *process) keep(d *delivery, peer message.Peer) (*port, error) {
	t := d.msg.Lasting
	if len(t.Session) != len(resume.Session{}) || t.Window < 0 || t.Window > resume.MaxWindow {
		return nil, fmt.Errorf("%w: a lasting link with a session of %d bytes and a window of %d", ErrNode, len(t.Session), t.Window)
	}
	k := &keeper{p: p, terms: *t}
	k.Link = lasting.New(lasting.Config{
		Session: resume.Session(t.Session), Dialler: t.Dialler, Window: t.Window, Released: k.released, Blocked: k.blocked,
	})
	q, err := p.addPort(p.traced(k, fmt.Sprintf("%s to %d", d.msg.Transport, peer), peer), peer)
	if err != nil {
		return nil, err
	}
	k.q, q.keeper = q, k
	if q.link == link.Link(k) {
		q.frames = k.Link
	}
	p.eng.Keeps(q.id, t.Window)
	n := &p.nursery
	n.keepers = append(n.keepers, k)
	if n.timer == nil {
		n.timer = p.machine.AfterFunc(time.Hour, p.tend)
	}
	n.tendIn(tendAnswer)
	k.Start(d.l, time.Now())
	p.refit(k)
	return q, nil
}

// Recv is the user's.
func (k *keeper) Recv(batch [][]byte) (int, error) {
	n, err := k.Link.Recv(batch)
	if err == io.EOF { //nolint:errorlint // links report io.EOF itself
		k.ended = true
	}
	if k.q != nil && k.q.lent && k.Owes() {
		k.p.nursery.owed = true
	}
	return n, err
}

const (
	// lendLasting is how many bytes are lent, at least, to a link that keeps a copy
	// of what it is not lent; lendBlocking where the program waits until they are its own
	// again: then the copy is made sooner than the peer has them.
	lendLasting  = 16 << 10
	lendBlocking = 128 << 10
	// patience is how many steps that bring nothing a blocking call makes before it
	// has the links copy what they are lent, keepChunk bytes at a time: the peer may
	// still be reading them, and say so soon.
	patience  = 32
	keepChunk = 128 << 10
)

func (p *process) setLent(q *port, lent bool) {
	if q.lent == lent {
		return
	}
	q.lent = lent
	if lent {
		p.nursery.lent++
	} else {
		p.nursery.lent--
	}
}

// keepLent makes lasting links copy some of what they are lent, so that it is sent
// as far as the program is concerned: of bytes that were not written, too, if all is
// set. It tells whether any did.
func (p *process) keepLent(all bool) (progress bool) {
	for _, k := range p.nursery.keepers {
		q := k.q
		if !q.lent || p.ports[q.id] != q || !p.eng.HasOutput(q.id) || !all && k.Behind() {
			continue
		}
		out := p.eng.Output(q.id)
		k.front = link.Front(k.front, out, keepChunk)
		n, err := q.link.Send(k.front)
		clear(k.front)
		if n > 0 {
			progress = true
			p.eng.Sent(q.id, n)
			p.setLent(q, k.Lending())
		}
		if err != nil {
			p.drop(q, err)
			progress = true
		}
	}
	return progress
}

// Close is the user's. A link that has ended in order stays until the peer has
// our end, too.
func (k *keeper) Close() error {
	if !k.ended {
		return k.Link.Close()
	}
	k.leaving = true
	_ = k.CloseSend() // fails if the link has failed
	k.p.nursery.tendIn(tendAnswer)
	return nil
}

// released forgets the handle of a link below that is about to be closed. The
// next step, for which a sleeping driver is woken, sees to another one.
func (k *keeper) released(handle int) {
	if q := k.q; q != nil && q.interest != 0 {
		_ = k.p.set.Remove(handle) // it is open, and in the set
		q.interest = 0
	}
	k.p.news.Store(true)
	k.p.set.Wake()
}

// blocked has the timer send what the link below has not taken, as the program
// may have nothing more to do with MPI for a while.
func (k *keeper) blocked() {
	if n := &k.p.nursery; !n.soon {
		n.soon = true
		n.tendIn(tendPending)
	}
}

// refit makes the port's flags, and the poll set, those of a new link below.
func (p *process) refit(k *keeper) {
	q := k.q
	if p.ports[q.id] != q {
		return // its user is done with it
	}
	h := k.Handle()
	memory := h != link.NoHandle && k.Limits().Memory
	switch {
	case memory && !q.mute:
		p.mute++
	case !memory && q.mute:
		p.mute--
	}
	q.memory, q.mute = memory, memory
	if h == link.NoHandle {
		return
	}
	if q.interest == 0 {
		if err := p.set.Add(h, uint32(q.id), link.Readable); err != nil {
			k.Lost(err)
			return
		}
		q.interest = link.Readable
	}
	p.warm(q)
}

// armLasting is arm for a lasting link: what its user waits for is not what the
// link below is to be waited for. Where there is none, the timer wakes the driver.
func (p *process) armLasting(q *port) bool {
	k := q.keeper
	want := link.Readable
	if !q.ended && p.eng.HasOutput(q.id) && (!q.lent || k.Owes() || k.Behind()) {
		want |= link.Writable
	}
	q.streak = 0
	if k.Arm(want) {
		p.warm(q)
		return false
	}
	h, on := k.Handle(), k.Wants()
	if h == link.NoHandle || on == q.interest {
		return true
	}
	wait := p.set.Modify
	if q.interest == 0 {
		wait = p.set.Add
	}
	if err := wait(h, uint32(q.id), on); err != nil {
		k.Lost(err)
		return false
	}
	q.interest = on
	return true
}

// lookStirred reads the lasting links that have bytes of which the poll set knows
// nothing.
func (p *process) lookStirred() (progress bool) {
	for _, k := range p.nursery.keepers {
		if k.Stirred() && p.ports[k.q.id] == k.q && p.receive(k.q) {
			progress = true
		}
	}
	return progress
}

// again takes a further connection for a lasting link, or the word that there is
// none.
func (p *process) again(d *delivery, peer message.Peer) {
	t := d.msg.Lasting
	k := p.keeperOf(peer, t.Session)
	switch {
	case k == nil:
		if d.l != nil {
			_ = d.l.Close()
		}
	case d.l != nil:
		k.asked = false
		k.Start(d.l, time.Now())
		p.refit(k)
		p.nursery.tendIn(tendAnswer)
	case t.Lost:
		if s := k.Status(time.Now()); s.Epoch <= t.Epoch {
			k.Lost(errTold)
		}
	case t.Over && k.ended:
		_ = k.Link.Close() // it has all of ours, else it would not have finished
	default:
		k.giveUp(d.msg.Reason)
	}
}

// errTold is why a link below is let go of that seems to be well.
var errTold = errors.New("the peer has lost it")

func (p *process) keeperOf(peer message.Peer, session []byte) *keeper {
	for _, k := range p.nursery.keepers {
		if k.q.peer == peer && string(k.terms.Session) == string(session) {
			return k
		}
	}
	return nil
}

// giveUp fails the link.
func (k *keeper) giveUp(reason string) {
	err := fmt.Errorf("%w: it was lost and not resumed: %s", ErrPeerGone, reason)
	if k.why != nil {
		err = fmt.Errorf("%w; it was lost because: %w", err, k.why)
	}
	k.Fail(err)
}

// renounce has the node refuse further connections, so that the peer learns that
// the link is lost instead of making one after the other.
func (k *keeper) renounce(why error) {
	m := wireup.Message{Kind: wireup.KindOpen, Peer: rank(k.q.peer), Lasting: &wireup.Lasting{Session: k.terms.Session, Again: true, Over: true}}
	m.Reason = why.Error()
	if k.p.control != nil {
		_ = k.p.control.Send(m) // it may be gone
	}
}

// mend sees to all lasting links, whatever has become of them, and tells whether it
// is done with one, which somebody may wait for.
func (p *process) mend() (done bool) {
	now := time.Now()
	for _, k := range p.nursery.keepers {
		before := k.Handle()
		if k.Welcome(now); k.Handle() != before {
			p.refit(k)
		}
	}
	var left []*keeper // dropping a port may make others change
	for _, k := range p.nursery.keepers {
		if p.update(k, now) {
			left = append(left, k)
		} else {
			done = true
			p.rouse()
		}
	}
	p.nursery.keepers = left
	return done
}

// update acts on how a link is. False: nothing more is to be done for it.
func (p *process) update(k *keeper, now time.Time) bool {
	s := k.Status(now)
	if s.State == resume.Apart {
		p.parted(k, s.Err, now)
		s = k.Status(now)
	}
	switch s.State {
	case resume.Up:
		if k.apart {
			k.apart, k.asked = false, false
			p.rouse() // for it takes bytes again
		}
	case resume.Failed:
		k.renounce(s.Err)
		if p.ports[k.q.id] == k.q {
			p.drop(k.q, s.Err)
		}
		return false
	case resume.Done:
		if k.leaving {
			_ = k.Link.Close()
		}
		return !k.leaving
	case resume.Closed:
		return false
	case resume.Apart, resume.Joining:
	}
	return true
}

// parted sees to a link without one below: asks for one, or gives up.
func (p *process) parted(k *keeper, why error, now time.Time) {
	if made := k.Made(); !k.apart || made != k.made { // it may have been up in between
		k.apart, k.made, k.since, k.asked = true, made, now, false
	}
	if why != nil {
		k.why = why
	}
	limit := k.terms.Limit
	if k.terms.Dialler {
		limit += slack
	}
	away, epoch := now.Sub(k.since), k.Status(now).Epoch
	if !k.terms.Dialler && now.Sub(k.told) > remind {
		k.asked = false
	}
	switch {
	case k.leaving && away > farewell:
		_ = k.Link.Close()
	case away > limit:
		k.giveUp(fmt.Sprintf("nobody has connected again within %v", k.terms.Limit))
	case !k.asked && (k.terms.Dialler && away >= k.Pause() || !k.terms.Dialler && away > notice && epoch > 0 && !k.Expects()):
		m := wireup.Message{Kind: wireup.KindOpen, Peer: rank(k.q.peer), Lasting: &wireup.Lasting{Session: k.terms.Session, Again: true, Epoch: epoch}}
		if k.why != nil {
			m.Reason = k.why.Error()
		}
		k.asked, k.told = p.control.Send(m) == nil, now
	}
}

// tend looks after the lasting links in the timer's goroutine. Where somebody
// makes progress, it is they who mend.
func (p *process) tend() {
	n := &p.nursery
	if !p.mu.TryLock() {
		p.news.Store(true)
		n.timer.Reset(time.Duration(n.pace.Load()))
		return
	}
	defer p.unlock()
	if phase(p.state.Load()) == finalized {
		return
	}
	n.soon = false
	for _, k := range n.keepers {
		if !p.driving || k.leaving {
			k.Pump()
		} else if q := k.q; q.lent && k.Behind() && p.ports[q.id] == q {
			p.flush(q)
		} else if k.Wants()&link.Writable != 0 {
			k.Push()
		}
	}
	p.mend()
	next := tendAlways
	for _, k := range n.keepers {
		next = min(next, k.pace())
	}
	n.pace.Store(int64(next))
	n.timer.Reset(next)
}

// tendIn has the timer come at most d from now.
func (n *nursery) tendIn(d time.Duration) {
	n.pace.Store(int64(d))
	n.timer.Reset(d)
}

// pace is when to look after the link next.
func (k *keeper) pace() time.Duration {
	switch {
	case k.Expects():
		return tendAnswer
	case k.leaving || k.Wants()&link.Writable != 0:
		return tendPending
	case k.apart:
		return tendApart
	}
	return tendAlways
}

// close ends what is left, before the poll set goes.
func (n *nursery) close() {
	for _, k := range n.keepers {
		_ = k.Link.Close()
	}
	n.keepers = nil
	if n.timer != nil {
		n.timer.Stop()
	}
}
