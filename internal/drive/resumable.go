package drive

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// The intervals after which the timer checks resumable links: while an answer is expected,
// while bytes are pending, while a link below is missing, and otherwise. A program that
// computes makes no progress, but its links can break.
const (
	tendAnswer   = 250 * time.Microsecond
	tendPending  = time.Millisecond
	tendDetached = 10 * time.Millisecond
	tendAlways   = 100 * time.Millisecond
)

const (
	// slack is how long the end that asks for connections waits, beyond the limit of the
	// process that makes them, to be told that there is none.
	slack = 3 * time.Second
	// ackWait is how long a link that has received all bytes waits to be resumed so that
	// the peer can acknowledge ours. The peer may have ended already.
	ackWait = 2 * time.Second
	// tellAfter is how long the end that is dialled waits before it has the other end told of
	// a loss, which that one usually has noticed too.
	tellAfter = 100 * time.Millisecond
	// tellEvery is the interval after which it does so again.
	tellEvery = time.Second
)

// ErrPeerLost is the reason for closing a link below that seems to work: the peer has lost it.
var ErrPeerLost = errors.New("the peer has lost it")

// ResumeRules are the rules for keeping a resumable link.
type ResumeRules struct {
	Dialler     bool          // this end asks for links below that replace lost ones
	ReportsLoss bool          // this end, which does not ask, reports a loss to the other one
	Limit       time.Duration // maximum time without a link below, before the resumable link is given up
	FirstLimit  time.Duration // the same before both ends have used any, if longer: the owner of the other end may not be ready
	Linger      time.Duration // maximum time that a link that has received everything waits for the peer to receive this end's bytes; 0: no limit
}

// ResumableOwner is what a Resumable asks for links below, and tells how the link fares.
type ResumableOwner interface {
	// Ask asks for a link below, or sends the peer a message that there is none. epoch is that of
	// the link below that was lost; why is the reason and may be nil. If Ask returns false it could
	// not ask, and is called again.
	Ask(why error, epoch uint64) bool
	// Resumed is called when the link accepts bytes again.
	Resumed()
	// Ended is called when the link has ended: because of why, or in order if that is nil.
	// It is the last call.
	Ended(why error)
}

// Resumable is a link that outlives the links below it. It asks for another link below when
// one is lost, gives up if none comes, and after Close stays until the peer has all bytes.
// It has the same owner as the Driver, and the same rule about goroutines.
type Resumable struct {
	*resumable.Link
	d        *Driver
	endpoint *Endpoint
	owner    ResumableOwner
	terms    ResumeRules

	detached bool      // there is no link below
	made     int       // number of links below until then
	since    time.Time // when apart or leaving was set
	why      error     // why the last link below was lost
	asked    bool      // another link below was asked for
	told     time.Time // when the other one was asked for
	ended    bool      // the user has received all bytes of the peer
	leaving  bool      // the user has closed the link
}

type resumables struct {
	all      []*Resumable
	attended bool          // the owner's loop always runs, so the timer is needed only for answers and missing links below
	timer    machine.Timer // nil before the first link
	pace     atomic.Int64  // nanoseconds between the timer's calls
	unmended atomic.Bool   // Mend should be called
	soon     bool          // the timer was set earlier because of pending bytes
	owed     bool          // a link has lent bytes to return
}

// SetAttended records that the owner makes progress at all times, so the timer need not handle
// pending bytes.
func (d *Driver) SetAttended() { d.attended = true }

// NewResumable makes the link of p, which is not driven yet, without a link below. window
// is that of resumable.Config.
func (d *Driver) NewResumable(p *Endpoint, session resume.ResumableID, window int, t ResumeRules, who ResumableOwner) *Resumable {
	r := &Resumable{d: d, endpoint: p, owner: who, terms: t}
	r.Link = resumable.New(resumable.Config{
		Session: session, Dialler: t.Dialler, Window: window, FirstLimit: t.FirstLimit, Released: r.released, Blocked: r.blocked,
	})
	p.Resumable = r
	return r
}

// Begin sets the first link below. Its endpoint is driven already, and from now on the Driver keeps
// the link.
func (r *Resumable) Begin(l link.Link) {
	d := r.d
	d.all = append(d.all, r)
	if d.timer == nil {
		d.timer = d.machine.AfterFunc(time.Hour, d.owner.TimerFired)
	}
	r.SetLink(l)
}

// SetLink sets another link below, l, and owns it.
func (r *Resumable) SetLink(l link.Link) {
	r.asked = false
	r.Start(l, r.d.machine.Now())
	r.d.refit(r)
	r.d.tendIn(tendAnswer)
}

// PeerLost reports to the link that the peer has lost the link below of an epoch; this end may not
// have noticed.
func (r *Resumable) PeerLost(epoch uint64) {
	if s := r.Status(r.d.machine.Now()); s.Epoch <= epoch {
		r.Lost(ErrPeerLost)
	}
}

// PeerFinished reports to the link that no further link below will come because the peer has
// finished in order, and so has received all bytes of this end. It returns false if this end has
// not received all bytes of the peer.
func (r *Resumable) PeerFinished() bool {
	if r.ended {
		_ = r.Link.Close()
	}
	return r.ended
}

// GiveUp fails the link because there will be no further link below.
func (r *Resumable) GiveUp(reason string) {
	err := fmt.Errorf("%w: %s", resume.ErrNotResumed, reason)
	if r.why != nil {
		err = fmt.Errorf("%w; it was lost because: %w", err, r.why)
	}
	r.Fail(err)
}

// Broken reports whether there is no link below, and why the last one was lost.
func (r *Resumable) Broken() (broken bool, why error) {
	return r.detached || r.Handle() == link.NoHandle, r.why
}

// BrokenFor returns the time since the link has no link below, or 0 if there is one, or it was lost
// just now.
func (r *Resumable) BrokenFor() time.Duration {
	if !r.detached {
		return 0
	}
	return r.d.machine.Now().Sub(r.since)
}

// Recv implements link.Link, for the user of the link.
func (r *Resumable) Recv(batch [][]byte) (int, error) {
	n, err := r.Link.Recv(batch)
	if err == io.EOF { //nolint:errorlint // links report io.EOF itself
		r.ended = true
	}
	if r.Lending() && r.CanReturn() {
		r.d.owed = true
	}
	return n, err
}

// Close implements link.Link, for the user of the link. A link that has ended in order stays
// until the peer has received our end, too.
func (r *Resumable) Close() error {
	switch {
	case r.leaving:
		return nil
	case !r.ended:
		return r.Link.Close()
	}
	if r.leaving = true; !r.detached {
		r.since = r.d.machine.Now()
	}
	_ = r.CloseSend() // fails if the link has failed
	r.d.tendIn(tendAnswer)
	return nil
}

// Leave is like Close, but the peer need not have ended the link: the link stays until the peer has
// received everything and ended it, or for ackWait, and as long again after each loss. The user may
// still receive.
func (r *Resumable) Leave() {
	if r.leaving {
		return
	}
	r.leaving, r.terms.Linger = true, ackWait
	if !r.detached {
		r.since = r.d.machine.Now()
	}
	r.d.tendIn(tendAnswer)
}

// released removes the handle of a link below that is about to be closed. The next step,
// for which a sleeper is woken, handles the next one.
func (r *Resumable) released(handle int) {
	if p := r.endpoint; p.interest != 0 {
		_ = r.d.set.Remove(handle) // the handle is open, and in the set
		p.interest = 0
	}
	r.d.unmended.Store(true)
	r.d.set.Wake()
}

// blocked makes the timer send what the link below has not taken, since the owner may make no
// calls for a while.
func (r *Resumable) blocked() {
	if d := r.d; !d.soon && !d.attended {
		d.soon = true
		d.tendIn(tendPending)
	}
}

// TakeReturnable reports whether a link has lent bytes to return, and resets that.
func (d *Driver) TakeReturnable() bool {
	owed := d.owed
	d.owed = false
	return owed
}

// ResumableCount returns the number of resumable links, including closed ones that wait for the
// peer.
func (d *Driver) ResumableCount() int { return len(d.all) }

// refit adapts the endpoint's flags and the poll set to a new link below.
func (d *Driver) refit(r *Resumable) {
	p := r.endpoint
	if !d.Has(p) {
		return // its user has closed it
	}
	h := r.Handle()
	memory := h != link.NoHandle && r.Limits().Memory
	switch {
	case memory && !p.mute:
		d.mute++
	case !memory && p.mute:
		d.mute--
	}
	p.memory, p.mute = memory, memory
	if h == link.NoHandle {
		return
	}
	if p.interest == 0 {
		if err := d.set.Add(h, p.key, link.Readable); err != nil {
			r.Lost(err)
			return
		}
		p.interest = link.Readable
	}
	d.MakeHot(p)
}

// armResumable is arm for a resumable link: what its user waits for may differ from what the link
// below has to be polled for. Without a link below, the timer wakes the owner.
func (d *Driver) armResumable(p *Endpoint, want link.Interest) bool {
	if p.Resumable.Arm(want) {
		d.MakeHot(p)
		return false
	}
	return d.awaitResumable(p)
}

func (d *Driver) awaitResumable(p *Endpoint) bool {
	r := p.Resumable
	if r.Handle() == link.NoHandle {
		return true
	}
	if err := d.await(p, r.Interest()); err != nil {
		r.Lost(err)
		return false
	}
	return true
}

// Mend checks all resumable links, acts on changes, and sets the timer for the next check. It
// reports whether a link has ended; a caller may wait for that.
func (d *Driver) Mend() (done bool) {
	d.unmended.Store(false)
	now := d.machine.Now()
	for _, r := range d.all {
		before := r.Handle()
		if r.ReadHellos(now); r.Handle() != before {
			d.refit(r)
			d.set.Wake() // a sleeper has not armed this link, and would not notice its first bytes
		}
	}
	var left []*Resumable // an owner's calls may change the list
	for _, r := range d.all {
		if r.update(now) {
			left = append(left, r)
		} else {
			done = true
		}
	}
	d.all = left
	next := time.Duration(0)
	for _, r := range d.all {
		if t := r.next(); next == 0 || t != 0 && t < next {
			next = t
		}
	}
	if next > 0 {
		d.tendIn(next)
	}
	return done
}

// update acts on the state of the link. It returns false if nothing more has to be done for
// it.
func (r *Resumable) update(now time.Time) bool {
	s := r.Status(now)
	if s.State == resume.Detached {
		r.mend(s, now)
		s = r.Status(now)
	}
	switch s.State {
	case resume.Up:
		if r.detached {
			r.detached, r.asked = false, false
			r.owner.Resumed()
		}
		if !r.leaving || r.terms.Linger == 0 || now.Sub(r.since) < r.terms.Linger {
			return true
		}
		_ = r.Link.Close()
	case resume.Done:
		if !r.leaving {
			return true
		}
		_ = r.Link.Close()
	case resume.Failed:
		r.owner.Ended(s.Err)
		return false
	case resume.Detached, resume.Joining:
		return true
	case resume.Closed:
	}
	r.owner.Ended(nil)
	return false
}

// mend handles a link without a link below: it asks for one, or gives up.
func (r *Resumable) mend(s resume.Status, now time.Time) {
	if made := r.LowerLinks(); !r.detached || made != r.made { // there may have been a link below since the last call
		r.detached, r.made, r.since, r.asked = true, made, now, false
	}
	if s.Err != nil {
		r.why = s.Err
	}
	within := r.Patience()
	limit := within
	if r.terms.Dialler {
		limit += slack
	} else if now.Sub(r.told) > tellEvery {
		r.asked = false
	}
	switch away := now.Sub(r.since); {
	case r.leaving && away > ackWait:
		_ = r.Link.Close()
	case away > limit:
		r.GiveUp(fmt.Sprintf("nobody has connected again within %v", within))
	case !r.asked && r.asks(away, s.Epoch):
		r.asked, r.told = r.owner.Ask(r.why, s.Epoch), now
	}
}

// Patience returns the maximum time that the link may be without a link below.
func (r *Resumable) Patience() time.Duration {
	if r.LowerLinks() == 0 {
		return max(r.terms.Limit, r.terms.FirstLimit)
	}
	return r.terms.Limit
}

// asks reports whether it is time to ask for a link below.
func (r *Resumable) asks(away time.Duration, epoch uint64) bool {
	if r.terms.Dialler {
		return away >= r.Pause()
	}
	return r.terms.ReportsLoss && away > tellAfter && epoch > 0 && !r.AwaitsHello()
}

// OnTimer does the timer's work for the resumable links. driven reports whether another goroutine
// makes progress at present, which moves their bytes.
func (d *Driver) OnTimer(driven bool) {
	d.soon = false
	for _, r := range d.all {
		switch {
		case !driven || r.leaving:
			r.Pump()
		case r.Lending() && r.HasUnsent() && d.Has(r.endpoint):
			r.endpoint.mover.Flush()
		case r.Interest()&link.Writable != 0:
			r.SendPending()
		}
	}
	d.Mend()
}

// RetryTimer is called if OnTimer could not be called now: the timer is set again, and the next
// Step calls Mend.
func (d *Driver) RetryTimer() {
	d.unmended.Store(true)
	d.timer.Reset(time.Duration(d.pace.Load()))
}

func (d *Driver) tendIn(t time.Duration) {
	d.pace.Store(int64(t))
	d.timer.Reset(t)
}

// next is the time after which to check the link again; 0 means that only an event changes
// anything.
func (r *Resumable) next() time.Duration {
	switch {
	case r.AwaitsHello():
		return tendAnswer
	case r.leaving || !r.d.attended && r.Interest()&link.Writable != 0:
		return tendPending
	case r.detached:
		return tendDetached
	case r.d.attended:
		return 0
	}
	return tendAlways
}

func (d *Driver) closeResumables() {
	for _, r := range d.all {
		_ = r.Link.Close()
	}
	d.all = nil
	if d.timer != nil {
		d.timer.Stop()
	}
}
