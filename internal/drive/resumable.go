package drive

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/resumable"
)

// How long until links that resume are looked after by the timer: where somebody is to answer,
// where bytes are pending, where a link below is to come, and always. A program that computes
// makes no progress, and its links break nevertheless.
const (
	tendAnswer  = 250 * time.Microsecond
	tendPending = time.Millisecond
	tendApart   = 10 * time.Millisecond
	tendAlways  = 100 * time.Millisecond
)

const (
	// slack is how long the end that asks for connections waits for the word that there is
	// none, beyond the limit of who makes them.
	slack = 3 * time.Second
	// farewell is how long a link whose bytes have all come waits to be resumed for the peer's
	// word that ours have. The peer may be content, and gone.
	farewell = 2 * time.Second
	// notice is how long the end that is dialled waits until it has the other one told, which
	// mostly has noticed, too.
	notice = 100 * time.Millisecond
	// remind is how long it waits until it does so again.
	remind = time.Second
)

// ErrNotResumed is wrapped by what a link ends with whose link below was lost for good.
var ErrNotResumed = errors.New("it was lost and not resumed")

// ErrPeerLost is why a link below is let go of that seems to be well.
var ErrPeerLost = errors.New("the peer has lost it")

// Terms say how a link that resumes is kept.
type Terms struct {
	Dialler bool          // this end asks for links below to replace lost ones
	Tells   bool          // the end that does not, asks that the other one be told of a loss
	Limit   time.Duration // without a link below, until the link is given up
	Stay    time.Duration // that it waits, its bytes all there, for the peer to have this end's; 0: without limit
}

// Patron is who has a link that resumes.
type Patron interface {
	// Ask asks whoever makes links below for one, or to have the peer's told that there is none.
	// epoch is that of the link below that was lost because of why, which may be nil. False: it
	// could not ask, and is called again.
	Ask(why error, epoch uint64) bool
	// Resumed is told that the link takes bytes again.
	Resumed()
	// Ended is told that the link is done with: because of why, or in order if that is nil. Nothing
	// follows.
	Ended(why error)
}

// Resumable is a link that outlives the links below it, and what is done to keep it: it asks for
// links below when one is lost, gives up when none comes, and stays after Close until the peer
// has all bytes, too. It is its owner's as the Driver is.
type Resumable struct {
	*resumable.Link
	d      *Driver
	port   *Port
	patron Patron
	terms  Terms

	apart   bool      // there is no link below
	made    int       // links below before that
	since   time.Time // of apart, or of leaving
	why     error     // why the last link below was lost
	asked   bool      // for another
	told    time.Time // when it was asked for
	ended   bool      // the user has all of the peer's bytes
	leaving bool      // and has closed the link
}

// resumables are the links of a driver that resume.
type resumables struct {
	all      []*Resumable
	attended bool          // the owner's loop always runs: the timer is for answers and what is apart
	timer    machine.Timer // nil before the first link
	pace     atomic.Int64  // nanoseconds between its calls
	unmended atomic.Bool   // Mend should be called
	soon     bool          // the timer was made to come soon, for pending bytes
	owed     bool          // a link owes bytes that were lent to it
}

// Attend says that the owner makes progress at all times: the timer need not see to pending bytes.
func (d *Driver) Attend() { d.attended = true }

// NewResumable makes the link of p, which is not yet driven, without a link below. window is
// as resumable.Config has it.
func (d *Driver) NewResumable(p *Port, session resume.Session, window int, t Terms, who Patron) *Resumable {
	r := &Resumable{d: d, port: p, patron: who, terms: t}
	r.Link = resumable.New(resumable.Config{
		Session: session, Dialler: t.Dialler, Window: window, Released: r.released, Blocked: r.blocked,
	})
	p.Resumable = r
	return r
}

// Begin has the link, whose port is driven, go on over its first link below, and be kept from now
// on.
func (r *Resumable) Begin(l link.Link) {
	d := r.d
	d.all = append(d.all, r)
	if d.timer == nil {
		d.timer = d.machine.AfterFunc(time.Hour, d.owner.Tend)
	}
	r.Take(l)
}

// Take has the link go on over l, and owns it.
func (r *Resumable) Take(l link.Link) {
	r.asked = false
	r.Start(l, r.d.machine.Now())
	r.d.refit(r)
	r.d.tendIn(tendAnswer)
}

// PeerLost says that the peer has lost the link below of an epoch, whatever this end thinks.
func (r *Resumable) PeerLost(epoch uint64) {
	if s := r.Status(r.d.machine.Now()); s.Epoch <= epoch {
		r.Lost(ErrPeerLost)
	}
}

// PeerOver says that there will be no link below since the peer has finished in order: it has all
// of this end's bytes. False: this end does not have all of the peer's.
func (r *Resumable) PeerOver() bool {
	if r.ended {
		_ = r.Link.Close()
	}
	return r.ended
}

// GiveUp fails the link: there will be no link below.
func (r *Resumable) GiveUp(reason string) {
	err := fmt.Errorf("%w: %s", ErrNotResumed, reason)
	if r.why != nil {
		err = fmt.Errorf("%w; it was lost because: %w", err, r.why)
	}
	r.Fail(err)
}

// Apart reports whether there is no link below, and why the last one was lost.
func (r *Resumable) Apart() (apart bool, why error) {
	return r.apart || r.Handle() == link.NoHandle, r.why
}

// Recv is the user's.
func (r *Resumable) Recv(batch [][]byte) (int, error) {
	n, err := r.Link.Recv(batch)
	if err == io.EOF { //nolint:errorlint // links report io.EOF itself
		r.ended = true
	}
	if r.Lending() && r.Owes() {
		r.d.owed = true
	}
	return n, err
}

// Close is the user's. A link that has ended in order stays until the peer has our end, too.
func (r *Resumable) Close() error {
	switch {
	case r.leaving:
		return nil
	case !r.ended:
		return r.Link.Close()
	}
	if r.leaving = true; !r.apart {
		r.since = r.d.machine.Now()
	}
	_ = r.CloseSend() // fails if the link has failed
	r.d.tendIn(tendAnswer)
	return nil
}

// released forgets the handle of a link below that is about to be closed. The next step,
// for which a sleeper is woken, sees to another one.
func (r *Resumable) released(handle int) {
	if p := r.port; p.interest != 0 {
		_ = r.d.set.Remove(handle) // it is open, and in the set
		p.interest = 0
	}
	r.d.unmended.Store(true)
	r.d.set.Wake()
}

// blocked has the timer send what the link below has not taken, as the owner may do
// nothing for a while.
func (r *Resumable) blocked() {
	if d := r.d; !d.soon && !d.attended {
		d.soon = true
		d.tendIn(tendPending)
	}
}

// Owed tells, once, whether a link owes bytes that were lent to it.
func (d *Driver) Owed() bool {
	owed := d.owed
	d.owed = false
	return owed
}

// Kept is how many links that resume are looked after, closed ones too.
func (d *Driver) Kept() int { return len(d.all) }

// refit makes the port's flags, and the poll set, those of a new link below.
func (d *Driver) refit(r *Resumable) {
	p := r.port
	if !d.Has(p) {
		return // its user is done with it
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
	d.Warm(p)
}

// armResumable is arm for a link that resumes: what its user waits for is not what the link below
// is to be waited for. Where there is none, the timer wakes the owner.
func (d *Driver) armResumable(p *Port, want link.Interest) bool {
	if p.Resumable.Arm(want) {
		d.Warm(p)
		return false
	}
	return d.awaitResumable(p)
}

func (d *Driver) awaitResumable(p *Port) bool {
	r := p.Resumable
	if r.Handle() == link.NoHandle {
		return true
	}
	if err := d.await(p, r.Wants()); err != nil {
		r.Lost(err)
		return false
	}
	return true
}

// Mend sees to all links that resume, whatever has become of them, and sets the timer for the next
// time. It reports whether it is done with one, which somebody may wait for.
func (d *Driver) Mend() (done bool) {
	d.unmended.Store(false)
	now := d.machine.Now()
	for _, r := range d.all {
		before := r.Handle()
		if r.Welcome(now); r.Handle() != before {
			d.refit(r)
			d.set.Wake() // who sleeps has not armed this link: its first bytes would come unheard
		}
	}
	var left []*Resumable // a patron may make others change
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

// update acts on how a link is. False: nothing more is to be done for it.
func (r *Resumable) update(now time.Time) bool {
	s := r.Status(now)
	if s.State == resume.Apart {
		r.mend(s, now)
		s = r.Status(now)
	}
	switch s.State {
	case resume.Up:
		if r.apart {
			r.apart, r.asked = false, false
			r.patron.Resumed()
		}
		if !r.leaving || r.terms.Stay == 0 || now.Sub(r.since) < r.terms.Stay {
			return true
		}
		_ = r.Link.Close()
	case resume.Done:
		if !r.leaving {
			return true
		}
		_ = r.Link.Close()
	case resume.Failed:
		r.patron.Ended(s.Err)
		return false
	case resume.Apart, resume.Joining:
		return true
	case resume.Closed:
	}
	r.patron.Ended(nil)
	return false
}

// mend sees to a link without one below: asks for one, or gives up.
func (r *Resumable) mend(s resume.Status, now time.Time) {
	if made := r.Made(); !r.apart || made != r.made { // it may have been up in between
		r.apart, r.made, r.since, r.asked = true, made, now, false
	}
	if s.Err != nil {
		r.why = s.Err
	}
	limit := r.terms.Limit
	if r.terms.Dialler {
		limit += slack
	} else if now.Sub(r.told) > remind {
		r.asked = false
	}
	switch away := now.Sub(r.since); {
	case r.leaving && away > farewell:
		_ = r.Link.Close()
	case away > limit:
		r.GiveUp(fmt.Sprintf("nobody has connected again within %v", r.terms.Limit))
	case !r.asked && r.asks(away, s.Epoch):
		r.asked, r.told = r.patron.Ask(r.why, s.Epoch), now
	}
}

// asks reports whether it is time to ask for a link below.
func (r *Resumable) asks(away time.Duration, epoch uint64) bool {
	if r.terms.Dialler {
		return away >= r.Pause()
	}
	return r.terms.Tells && away > notice && epoch > 0 && !r.Expects()
}

// Tend looks after the links that resume, as the timer has it. driven reports whether somebody
// makes progress besides, who moves their bytes.
func (d *Driver) Tend(driven bool) {
	d.soon = false
	for _, r := range d.all {
		switch {
		case !driven || r.leaving:
			r.Pump()
		case r.Lending() && r.Behind() && d.Has(r.port):
			r.port.mover.Flush()
		case r.Wants()&link.Writable != 0:
			r.Push()
		}
	}
	d.Mend()
}

// TendLater has the timer come again although it was not the moment, and the next Step mend.
func (d *Driver) TendLater() {
	d.unmended.Store(true)
	d.timer.Reset(time.Duration(d.pace.Load()))
}

// tendIn has the timer come at most t from now.
func (d *Driver) tendIn(t time.Duration) {
	d.pace.Store(int64(t))
	d.timer.Reset(t)
}

// next is when to look after the link again; 0: when something happens.
func (r *Resumable) next() time.Duration {
	switch {
	case r.Expects():
		return tendAnswer
	case r.leaving || !r.d.attended && r.Wants()&link.Writable != 0:
		return tendPending
	case r.apart:
		return tendApart
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
