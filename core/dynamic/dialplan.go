package dynamic

import (
	"slices"
	"time"
)

// The limits of a dial plan.
const (
	YieldTime = time.Second // maximum wait for the other end's link after a lost tie
	MaxYields = 25          // maximum number of such waits: the other end may have to dial again after two greetings of GreetLimit

	shortPause = time.Millisecond // the first pause before a link to another world is tried again
)

// retries are the pauses before the same candidate is dialled again after a fault that may pass by
// itself: a plugin that has crashed and is started again opens its listeners within that time.
var retries = [...]time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}

// MaxDials is the maximum number of times that a candidate is dialled in a row.
const MaxDials = 1 + len(retries)

// DialFailure is how a dial has failed, other than by the peer's refusal. Its bits may be combined;
// 0 is a failure of any other kind.
type DialFailure uint8

// The failures.
const (
	NotListening DialFailure = 1 << iota // no process listens at the address
	NoRoom                               // too many connections are greeting at the peer, or here
	Uncertain                            // the greeting of a link that resumes broke off: the peer may have accepted the link
	Impossible                           // the address or the transport can never work
	Unconnected                          // no connection was made: it failed before the peer was greeted
	OutOfReach                           // there is no route to the address, no process listens, or a firewall refuses
	TooSlow                              // no connection was made in time
)

// DialResult is how a dial by a candidate has ended, for Dialled.
type DialResult struct {
	Err     error // nil: there is a link
	Verdict Verdict
	Failure DialFailure // how the dial failed, if the peer has sent no proven verdict
}

// Action is what the node has to do in a DialStep.
type Action uint8

// The actions. After one of the last four the plan is over.
const (
	DialCandidate   Action = iota // dial Candidate and call Dialled
	Pause                         // call Waited after Wait
	PauseAfterRound               // like Pause, after all candidates have failed: FailedCandidates has the reasons
	KeepLink                      // the link that was made is used
	CloseLink                     // close the link that was made: the other end's link is used
	GiveUp                        // there will be no link: see FailedCandidates, Verdict and Yielded for the reason
	Abandon                       // no link is needed any more, or the other end's is used
)

// DialStep is the next action of a DialPlan.
type DialStep struct {
	Action    Action
	Candidate int
	Resumes   bool          // DialCandidate: the greeting names an existing link's session: this is a further connection for it
	Fresh     bool          // DialCandidate: this is a new link, with a new session if it resumes
	Wait      time.Duration // time to wait; Pause, PauseAfterRound
	Verdict   Verdict       // GiveUp: the peer's verdict, if it was final
	Yielded   bool          // GiveUp: the other end dialled too and was prior, but its link did not come
}

// PeerLives reports whether the node of the peer has answered that the peer has a link or is about
// to make one, after a plan that ended without a link.
func (s DialStep) PeerLives() bool { return s.Yielded || s.Verdict == StillLinked }

// FailedCandidate is a candidate that has failed in this round, and the reason.
type FailedCandidate struct {
	Candidate int
	DialResult
}

// A DialPlan finds a link: it decides which candidates are dialled, in which order, when they are
// dialled again and when it ends. Candidates are numbers, the best one is 0. Begin returns the
// first step, Dialled and Waited the next ones. One goroutine may use it, and only while it guards
// the PairLinks that it was made with. It makes links inside a job, or those of
// MPI_Comm_connect (MPI-4.1, 11.9.3).
type DialPlan struct {
	rules
	pair       pairLink
	candidates int
	candidate  int // the candidate that is being dialled
	retry      int // number of times that it was dialled again
	round      int
	yields     int
	pause      time.Duration // the next pause between rounds
	end        time.Time     // no round begins after this time; zero: no limit
	missed     []FailedCandidate
	waited     func(now time.Time) DialStep

	// Whether the peer may have accepted a link that resumes, without this end knowing it, and
	// until when this matters.
	unsure    bool
	again     bool
	unsureEnd time.Time
}

type rules struct {
	passes      DialFailure        // failures after which the same candidate is dialled again
	final       func(Verdict) bool // reports whether the peer's verdict makes all other candidates useless
	first, last time.Duration      // pauses between rounds, doubling from first to last; 0: only one round
	limit       time.Duration      // maximum time of all rounds; 0: none
	resume      time.Duration      // maximum time to ask for a link that may have been accepted; 0: do not ask
	hopeless    bool               // the plan ends when all candidates are Impossible
}

type pairLink interface {
	wanted() bool
	lost() bool
	overdue() bool
	made() (used, later bool)
	gaveUp() bool
	begun() // the plan begins
	over()  // the plan has had its last step
}

// DirectLinkPlan returns the plan for the first link between two procs of a job. resume is the
// maximum time that the link may be without a connection, 0 if it does not resume.
func DirectLinkPlan[K comparable](candidates int, t *PairLinks[K], x K, resume time.Duration) *DialPlan {
	return &DialPlan{candidates: candidates, pair: &directPair[K]{t: t, x: x}, rules: rules{
		passes: NotListening | NoRoom, resume: resume,
		final: func(v Verdict) bool { return v == TieLost },
	}}
}

// WorldLinkPlan returns the plan for a link between procs of two worlds (MPI-4.1, 11.9). resume is
// that of DirectLinkPlan.
func WorldLinkPlan[K comparable](candidates int, t *PairLinks[K], x K, resume time.Duration) *DialPlan {
	return &DialPlan{candidates: candidates, pair: &worldPair[K]{directPair[K]{t: t, x: x}}, pause: shortPause, rules: rules{passes: NotListening | NoRoom, final: anyVerdict, resume: resume}}
}

// ConnectPlan returns the plan for a connection to a port (MPI_Comm_connect; MPI-4.1, 11.9.3),
// or for one that proves that a host can be reached.
func ConnectPlan(candidates int) *DialPlan {
	return &DialPlan{candidates: candidates, pair: oneDialler{}, rules: rules{passes: NotListening | NoRoom, final: anyVerdict}}
}

// ResumePlan returns the plan for a further connection of a link that resumes, within limit.
func ResumePlan(candidates int, limit time.Duration) *DialPlan {
	return &DialPlan{candidates: candidates, pair: oneDialler{}, rules: rules{
		limit: limit, first: 10 * time.Millisecond, last: 250 * time.Millisecond,
		final: func(v Verdict) bool { return v == Leaving || v == UnknownLink || v == UnknownRank },
	}}
}

// ChannelPlan returns the plan for a channel at the start of a job (IMPI ch.2, Host-to-host
// connections). It has no time limit of its own; the dance has one.
func ChannelPlan(candidates int) *DialPlan {
	return &DialPlan{candidates: candidates, pair: oneDialler{}, rules: rules{
		first: 50 * time.Millisecond, last: 2 * time.Second, hopeless: true,
		final: func(Verdict) bool { return false },
	}}
}

// OnDemandChannelPlan returns the plan, within limit, for a channel that is made when the first
// packet needs it.
func OnDemandChannelPlan[K comparable](candidates int, t *PairLinks[K], x K, limit time.Duration) *DialPlan {
	return &DialPlan{candidates: candidates, pair: &onDemandPair[K]{directPair[K]{t: t, x: x}}, rules: rules{
		limit: limit, first: 10 * time.Millisecond, last: 500 * time.Millisecond, hopeless: true,
		final: func(v Verdict) bool { return v == TieLost || v == Leaving || v == UnknownRank },
	}}
}

func anyVerdict(Verdict) bool { return true }

// FailedCandidates returns the candidates that have failed in this round, in their order.
func (s *DialPlan) FailedCandidates() []FailedCandidate { return s.missed }

// Rounds returns the number of rounds over all candidates, the last round included.
func (s *DialPlan) Rounds() int { return s.round }

// Begin returns the first step, from which on the plan's time limit counts.
func (s *DialPlan) Begin(now time.Time) DialStep {
	if s.limit > 0 {
		s.end = now.Add(s.limit)
	}
	if s.first > 0 {
		s.pause = s.first
	}
	s.pair.begun()
	return s.ended(s.begin(now))
}

// ended returns a step, after which another plan for the pair may begin if it is the last one.
func (s *DialPlan) ended(step DialStep) DialStep {
	if step.Action >= KeepLink {
		s.pair.over()
	}
	return step
}

func (s *DialPlan) begin(now time.Time) DialStep {
	s.round++
	s.candidate, s.retry, s.missed = 0, 0, nil
	return s.dial(now)
}

func (s *DialPlan) dial(now time.Time) DialStep {
	if s.candidate == s.candidates {
		return s.rest(now)
	}
	return DialStep{Action: DialCandidate, Candidate: s.candidate, Fresh: true}
}

// dialOn goes on to the next dial after one that failed, unless the other end's link has come
// in the meantime.
func (s *DialPlan) dialOn(now time.Time) DialStep {
	if !s.pair.wanted() {
		return DialStep{Action: Abandon}
	}
	return s.dial(now)
}

// Dialled takes the result of the dial that was the last step, and returns the next step.
func (s *DialPlan) Dialled(now time.Time, a DialResult) DialStep { return s.ended(s.dialled(now, a)) }

func (s *DialPlan) dialled(now time.Time, a DialResult) DialStep {
	if a.Err == nil {
		s.unsure = false
		return s.made(now)
	}
	if a.Failure&Uncertain != 0 && s.resume > 0 && !s.unsure {
		s.unsure, s.again = true, true
		s.unsureEnd, s.pause = now.Add(s.resume), 10*time.Millisecond
		return s.dialUnsure(now)
	}
	if s.unsure {
		switch {
		case a.Verdict == UnknownLink && s.again: // the peer had not accepted the link: begin it again
			s.again = false
			return s.dialUnsure(now)
		case a.Verdict == Accepted && now.Before(s.unsureEnd):
			s.again = true
			return s.wait(min(s.double(250*time.Millisecond), s.unsureEnd.Sub(now)), s.dialUnsure)
		}
		s.unsure = false
	}
	switch {
	case a.Verdict != Accepted && s.final(a.Verdict):
		s.missed = append(s.missed, FailedCandidate{s.candidate, a})
		return s.refused(a.Verdict)
	case a.Failure&s.passes != 0 && s.retry < len(retries):
		s.retry++
		return s.wait(retries[s.retry-1], s.dialOn)
	}
	s.missed = append(s.missed, FailedCandidate{s.candidate, a})
	s.candidate, s.retry = s.candidate+1, 0
	return s.dialOn(now)
}

// dialUnsure dials the same candidate again when the greeting of the last dial broke off, so that
// the peer may have accepted the link. If the peer has accepted it, its proc waits for a further
// connection of that link and would not use a new one. If not, its node answers UnknownLink.
func (s *DialPlan) dialUnsure(time.Time) DialStep {
	return DialStep{Action: DialCandidate, Candidate: s.candidate, Resumes: s.again}
}

// Waited records that the wait of the last step is over, and returns the next step.
func (s *DialPlan) Waited(now time.Time) DialStep { return s.ended(s.waited(now)) }

func (s *DialPlan) wait(d time.Duration, then func(time.Time) DialStep) DialStep {
	s.waited = then
	return DialStep{Action: Pause, Wait: d}
}

// double returns the pause, and doubles it for the next time up to most.
func (s *DialPlan) double(most time.Duration) (d time.Duration) {
	d = s.pause
	s.pause = min(2*d, most)
	return d
}

func (s *DialPlan) rest(now time.Time) DialStep {
	if s.first == 0 || s.limit > 0 && !now.Before(s.end) || s.hopeless && s.allImpossible() {
		return s.giveUp(DialStep{})
	}
	d := s.double(s.last)
	if s.limit > 0 {
		d = min(d, s.end.Sub(now))
	}
	step := s.wait(d, func(now time.Time) DialStep {
		if s.limit > 0 && !now.Before(s.end) {
			return s.giveUp(DialStep{})
		}
		return s.begin(now)
	})
	step.Action = PauseAfterRound
	return step
}

func (s *DialPlan) allImpossible() bool {
	return !slices.ContainsFunc(s.missed, func(m FailedCandidate) bool { return m.Failure&Impossible == 0 })
}

func (s *DialPlan) refused(v Verdict) DialStep {
	_, alone := s.pair.(oneDialler)
	switch {
	case v == TieLost && !alone:
		if !s.pair.lost() {
			return DialStep{Action: Abandon}
		}
		return s.wait(YieldTime, func(now time.Time) DialStep {
			if !s.pair.overdue() {
				return DialStep{Action: Abandon}
			}
			return s.yielded(now, DialStep{Yielded: true})
		})
	case v == StillLinked && !alone: // both procs have closed the last link, and the other node will soon notice it
		d := s.double(YieldTime)
		return s.wait(d, func(now time.Time) DialStep {
			switch {
			case !s.pair.wanted():
				return DialStep{Action: Abandon}
			case d < YieldTime:
				return s.begin(now)
			}
			return s.yielded(now, DialStep{Verdict: v})
		})
	}
	return s.giveUp(DialStep{Verdict: v})
}

// yielded counts the waits for the other end's link, and gives up after MaxYields.
func (s *DialPlan) yielded(now time.Time, last DialStep) DialStep {
	if s.yields++; s.yields == MaxYields {
		return s.giveUp(last)
	}
	return s.begin(now)
}

func (s *DialPlan) made(now time.Time) DialStep {
	switch used, later := s.pair.made(); {
	case used:
		return DialStep{Action: KeepLink, Candidate: s.candidate}
	case later:
		return s.wait(s.double(YieldTime), s.made)
	}
	return DialStep{Action: CloseLink}
}

func (s *DialPlan) giveUp(step DialStep) DialStep {
	step.Action = GiveUp
	if !s.pair.gaveUp() {
		step.Action = Abandon
	}
	return step
}

// directPair is two procs of a job. A link that this end has made is not used if the
// other end's has come meanwhile.
type directPair[K comparable] struct {
	t    *PairLinks[K]
	x    K
	plan uint64 // of t.plans
}

func (t *directPair[K]) begun() { t.plan = t.t.plans[t.x] }

func (t *directPair[K]) over() {
	if t.t.plans[t.x] == t.plan {
		t.t.planned(t.x)
	}
}

// overdue is false if the link has come, was lost, and another plan has begun since.
func (t *directPair[K]) overdue() bool { return t.t.plans[t.x] == t.plan && t.t.Overdue(t.x) }

func (t *directPair[K]) wanted() bool             { return t.t.State(t.x) == Dialling }
func (t *directPair[K]) lost() bool               { return t.t.LostTie(t.x) }
func (t *directPair[K]) made() (used, later bool) { return t.t.Made(t.x), false }
func (t *directPair[K]) gaveUp() bool             { return t.t.GiveUp(t.x) }

// worldPair is two procs of different worlds. The proc at the other end uses a link as
// soon as its node has accepted it, so it must not be closed here. If our proc has a link of the
// other end by then, both procs have agreed to close that one.
type worldPair[K comparable] struct{ directPair[K] }

func (t *worldPair[K]) made() (used, later bool) { return t.t.UsedByPeer(t.x), true }
func (t *worldPair[K]) gaveUp() bool             { return t.t.Fail(t.x) }

type onDemandPair[K comparable] struct{ directPair[K] }

func (t *onDemandPair[K]) gaveUp() bool { return t.t.Fail(t.x) }

type oneDialler struct{}

func (oneDialler) wanted() bool             { return true }
func (oneDialler) lost() bool               { return false }
func (oneDialler) overdue() bool            { return false }
func (oneDialler) made() (used, later bool) { return true, false }
func (oneDialler) gaveUp() bool             { return true }
func (oneDialler) begun()                   {}
func (oneDialler) over()                    {}
