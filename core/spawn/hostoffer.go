package spawn

import (
	"time"

	"github.com/openimpi/impi/core/dynamic"
)

// The pauses of a spare site before it dials a host again.
const (
	LostPause = 10 * time.Second       // after the host was lost, or while it cannot be dialled
	IdlePause = 250 * time.Millisecond // after an idle link has ended: the host may be ending
)

// HostOffer decides how a spare site keeps an idle link to a host of the job, as an offer for the
// info key host of a spawn (MPI-4.1, 11.8.4): when it dials, by which candidate, when again, and
// when the host is lost. It has no clock: the caller passes the time, calls [HostOffer.Tick] when
// [HostOffer.Deadline] has come, and does what [HostOffer.Next] returns. [HostOffer.Begin] comes
// first. Only one goroutine may use it at a time.
type HostOffer struct {
	patience time.Duration
	plan     *dynamic.DialPlan
	state    offerState
	until    time.Time
	procs    int  // in the offer
	changed  bool // since it was last dialled
	idle     bool // the host has an idle link, perhaps with an older offer
	lost     bool
	there    bool // the host has answered since the candidates were listed, and does not take links now
	steps    []OfferStep
}

type offerState uint8

const (
	offerOver    offerState = iota // also before Begin
	offerListing                   // the candidates are being listed
	offerDialling
	offerPausing // until, in the plan
	offerIdle
	offerResting // until, then there is a new plan
)

// OfferAction is what the node of a spare site has to do.
type OfferAction uint8

// The actions.
const (
	ListCandidates OfferAction = iota // find by which candidates the host can be dialled now, and call Candidates or Drained
	DialOffer                         // dial by Candidate, offer the site on the link, and call Dialled or Refused
	OfferLinked                       // the host has an idle link
	OfferLost                         // the host has not answered for too long, or refuses the site if Final is set: Plan has the reasons
)

// OfferStep is an action, and what it is about.
type OfferStep struct {
	Action    OfferAction
	Candidate int
	Procs     int // in the offer
	Final     bool
}

// NewHostOffer returns an offer for a host that is lost when it has not answered for as long as
// patience.
func NewHostOffer(patience time.Duration) *HostOffer { return &HostOffer{patience: patience} }

// Next removes and returns the next step; ok is false if there is none.
func (o *HostOffer) Next() (x OfferStep, ok bool) {
	if len(o.steps) == 0 {
		return x, false
	}
	x, o.steps = o.steps[0], o.steps[1:]
	return x, true
}

// Over reports whether nothing more is to be done.
func (o *HostOffer) Over() bool { return o.state == offerOver && len(o.steps) == 0 }

// Plan returns the plan by which the host is dialled or was dialled last, nil if it never was. It
// knows which candidates have failed in the last round.
func (o *HostOffer) Plan() *dynamic.DialPlan { return o.plan }

// Begin begins to offer the site, which has so many procs.
func (o *HostOffer) Begin(procs int) {
	o.procs = procs
	o.list()
}

func (o *HostOffer) list() {
	o.state, o.there = offerListing, false
	o.steps = append(o.steps, OfferStep{Action: ListCandidates})
}

// Candidates records that the host can be dialled by n candidates.
func (o *HostOffer) Candidates(now time.Time, n int) {
	if o.state == offerListing {
		o.plan = dynamic.SparePlan(n, o.patience)
		o.goOn(now, o.plan.Begin(now))
	}
}

// Drained records, instead of Candidates, that the host could be dialled only by transports that are
// drained. That is not for long and no fault of the host, which is not lost by it. A site that has lost
// the job's server has to dial by these all the same, as nobody else tells it that the job is over.
func (o *HostOffer) Drained(now time.Time) {
	if o.state == offerListing {
		o.state, o.until = offerResting, now.Add(LostPause)
	}
}

// Dialled records how the dial has ended.
func (o *HostOffer) Dialled(now time.Time, a dynamic.DialResult) {
	if o.state == offerDialling {
		o.there = o.there || a.Verdict == dynamic.Busy
		o.goOn(now, o.plan.Dialled(now, a))
	}
}

func (o *HostOffer) goOn(now time.Time, step dynamic.DialStep) {
	switch step.Action {
	case dynamic.DialCandidate:
		o.state, o.changed = offerDialling, false
		o.steps = append(o.steps, OfferStep{Action: DialOffer, Candidate: step.Candidate, Procs: o.procs})
	case dynamic.Pause, dynamic.PauseAfterRound:
		o.state, o.until = offerPausing, now.Add(step.Wait)
	case dynamic.KeepLink:
		o.state, o.idle, o.lost = offerIdle, true, false
		o.steps = append(o.steps, OfferStep{Action: OfferLinked})
		if o.changed {
			o.list()
		}
	default:
		o.state, o.until = offerResting, now.Add(LostPause)
		if !o.idle && !o.there && !o.lost {
			o.lost, o.steps = true, append(o.steps, OfferStep{Action: OfferLost})
		}
	}
}

// Refused records that the host does not take the site, whatever is dialled.
func (o *HostOffer) Refused() {
	if o.state == offerDialling {
		o.state = offerOver
		o.steps = append(o.steps, OfferStep{Action: OfferLost, Final: true})
	}
}

// Changed records how many procs were spawned at the site. A host that has been told another number
// gets a new link with a new offer. Until then, and if it cannot be dialled, it keeps the idle link
// that it has.
func (o *HostOffer) Changed(procs int) {
	if procs == o.procs {
		return
	}
	o.procs = procs
	if o.changed = true; o.state == offerIdle {
		o.list()
	}
}

// Taken records that a spawn has taken the idle link.
func (o *HostOffer) Taken() {
	if o.unlinked() {
		o.list()
	}
}

// Ended records that the idle link has ended.
func (o *HostOffer) Ended(now time.Time) {
	if o.unlinked() {
		o.state, o.until = offerResting, now.Add(IdlePause)
	}
}

// unlinked records that there is no idle link any more, and reports whether another one has to be
// made, as none is being made.
func (o *HostOffer) unlinked() (another bool) {
	another = o.state == offerIdle || o.state == offerResting && o.idle
	o.idle = false
	return another
}

// Stop ends the offer: the host's part of the job is over, or the site leaves.
func (o *HostOffer) Stop() { o.state, o.steps = offerOver, nil }

// Deadline returns when Tick is to be called, if anything is waited for.
func (o *HostOffer) Deadline() (at time.Time, ok bool) {
	return o.until, o.state == offerPausing || o.state == offerResting
}

// Tick dials again if the time has come.
func (o *HostOffer) Tick(now time.Time) {
	if at, ok := o.Deadline(); !ok || now.Before(at) {
		return
	}
	if o.state == offerResting {
		o.list()
		return
	}
	o.goOn(now, o.plan.Waited(now))
}
