package job

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

type dialling struct {
	*dynamic.DialPlan
	k     *kernel.Kernel
	dial  func(step dynamic.DialStep, answer func(dynamic.DialResult))
	rests func()                      // may be nil
	over  func(last dynamic.DialStep) // called at the end of the plan
	gone  func() bool                 // reports whether the dialling proc is gone; over is not called then
	left  func()                      // called when the dialling proc is gone; may be nil
	unmet int                         // dials that have failed by chance
	ended func()                      // called when the plan has ended in any way

	yields bool // it waits for the other end's link
}

var (
	errNotListening = errors.New("connection refused")
	errNoAnswer     = errors.New("no answer in time")
	errBroken       = errors.New("the connection broke")
	errNoGreeting   = errors.New("no greeting in time")
	errRefused      = errors.New("refused")
)

// isOnlyPlan checks that no other plan dials for the same pair of procs or hosts.
func (s *dialling) isOnlyPlan(w *Simulation, pair any) {
	if other := w.plans[pair]; other != nil && !other.yields {
		disorder(w, "a second dial plan is begun for %v", pair)
	}
	w.plans[pair] = s
	s.ended = func() {
		if w.plans[pair] == s {
			delete(w.plans, pair)
		}
	}
}

func (s *dialling) now() time.Time { return epoch.Add(s.k.Now()) }

func (s *dialling) begin() { s.carryOut(s.Begin(s.now())) }

func (s *dialling) carryOut(step dynamic.DialStep) {
	s.yields = step.Action == dynamic.Pause && step.Wait == dynamic.YieldTime
	switch step.Action {
	case dynamic.DialCandidate:
		s.dial(step, func(a dynamic.DialResult) {
			s.unlessGone(func() { s.carryOut(s.Dialled(s.now(), a)) })
		})
	case dynamic.Pause, dynamic.PauseAfterRound:
		if step.Action == dynamic.PauseAfterRound && s.rests != nil {
			s.rests()
		}
		s.k.After(step.Wait, func() {
			s.unlessGone(func() { s.carryOut(s.Waited(s.now())) })
		})
	default:
		s.ended()
		s.over(step)
	}
}

func (s *dialling) unlessGone(f func()) {
	if !s.gone() {
		f()
		return
	}
	s.ended()
	if s.left != nil {
		s.left()
	}
}

func said(v dynamic.Verdict) dynamic.DialResult {
	return dynamic.DialResult{Err: errRefused, Verdict: v}
}

func unheard(f dynamic.DialFailure) dynamic.DialResult {
	if f&dynamic.TooSlow != 0 {
		return dynamic.DialResult{Err: errNoAnswer, Failure: f}
	}
	return dynamic.DialResult{Err: errNotListening, Failure: f}
}

// mostUnmet bounds how many dials of a plan fail by chance; with more, a job without faults might
// not start in time.
const mostUnmet = 24

func (s *dialling) fails(chance float64) (a dynamic.DialResult, failing bool) {
	if s.unmet == mostUnmet && chance < 1 {
		return a, false
	}
	if a, failing = fails(s.k, chance); failing {
		s.unmet++
	}
	return a, failing
}

func fails(k *kernel.Kernel, chance float64) (a dynamic.DialResult, failing bool) {
	if !k.Chance(chance) {
		return a, false
	}
	return unheard([]dynamic.DialFailure{0, dynamic.NotListening, dynamic.NoRoom}[k.Rand().IntN(3)]), true
}

// Firewall keeps others from connecting to one host, for a time from their first dial on.
type Firewall struct {
	Host  int // counted over all hosts of own sites
	For   time.Duration
	Drops bool          // it answers nothing; otherwise it refuses
	Must  bool          // channels are made only by transports whose handshake may be slow
	Only  bool          // it is in the way of transports, and not of the listener for channels
	Slow  time.Duration // how long it takes to connect to the host when it is not in the way
	Busy  time.Duration // after that, how long the host greets nobody, as it is busy

	// Links means that it is in the way of links between procs, and not of channels. It comes At that
	// time after the first host knows the job, and is there until For is over, for all. While the host
	// is Busy after that, links that do not resume are not greeted.
	Links bool
	At    time.Duration
}

// Ever is as long as no host waits for another one.
const Ever = time.Hour

// reachOf returns what a host dials another one with.
func reachOf(h *host, peer wire.HostRank) *agent.Reach {
	s, client := h.s, h.s.job.Hosts[peer].Client
	return &agent.Reach{Must: mustRoute(s, client), Own: client == s.rank, Listens: s.job.Listens(client), Began: s.w.time()}
}

// mustRoute reports whether channels to a client are made by a transport of the route alone.
func mustRoute(s *site, client wire.ClientRank) bool {
	f := s.w.cfg.Firewall
	return f != nil && f.Must && s.ours(client)
}

// walled reports whether there is a firewall before a host.
func walled(w *Simulation, peer wire.HostRank) bool {
	if w.cfg.Firewall == nil {
		return false
	}
	var own []wire.HostRank
	for i, x := range w.job.Hosts {
		if w.cfg.Sites[x.Client].Foreign == nil {
			own = append(own, wire.HostRank(i))
		}
	}
	return own[w.cfg.Firewall.Host%len(own)] == peer
}

// reach dials a host, by a transport or at its listener for channels, which may take that long, and
// calls connect when it is connected. A connection that the firewall drops is made when there is no
// firewall any more.
func reach(h *host, peer wire.HostRank, transport bool, began time.Time, limit time.Duration, answer func(dynamic.DialResult), connect func()) {
	w, f := h.s.w, h.s.w.cfg.Firewall
	if f == nil || f.Links || !walled(w, peer) {
		connect()
		return
	}
	left := began.Add(f.For).Sub(w.time())
	if f.Only && !transport {
		left = -f.Busy
	}
	switch {
	case left > 0:
		firewallHits(w, h, peer)
		f.stop(w, left, limit, w.cfg.Links.Channel, answer, func() { answer(unheard(dynamic.NoRoom)) }) // it is dialled at once when the firewall is gone
	case left > -f.Busy:
		h.dance.Connected(peer)
		w.k.After(dynamic.GreetLimit, func() {
			answer(dynamic.DialResult{Err: errNoGreeting, Failure: dynamic.GreetingFailed(false, false, h.s.resumes(h.rank, peer))})
		})
	case f.Slow >= limit:
		w.k.After(limit, func() { answer(unheard(dynamic.Unconnected | dynamic.TooSlow)) })
	case f.Slow > 0:
		w.k.After(f.Slow, connect)
	default:
		connect()
	}
}

// stop ends a dial, which may take that long, by a firewall that is there for so much longer.
func (f *Firewall) stop(w *Simulation, left, limit time.Duration, by kernel.LinkSpec, answer func(dynamic.DialResult), gone func()) {
	switch {
	case !f.Drops:
		w.k.After(w.k.Between(0, by.Delay), func() { answer(unheard(dynamic.Unconnected | dynamic.OutOfReach)) })
	case left < limit:
		w.k.After(left, gone)
	default:
		w.k.After(limit, func() { answer(unheard(dynamic.Unconnected | dynamic.TooSlow)) })
	}
}

// reachProc is reach for a link to a proc of a host.
func reachProc(h *host, peer wire.HostRank, limit time.Duration, answer func(dynamic.DialResult), connect func()) {
	w, f := h.s.w, h.s.w.cfg.Firewall
	if f == nil || !f.Links || peer == h.rank || !walled(w, peer) {
		connect()
		return
	}
	at := w.k.Now() - w.danced
	if left := f.At + f.For - at; at >= f.At && left > 0 {
		f.stop(w, left, limit, w.cfg.Links.Direct, answer, connect)
		return
	}
	connect()
}

// greetsNobody reports whether a host is too busy to greet those who dial for a link to a proc.
func greetsNobody(w *Simulation, peer wire.HostRank) bool {
	f := w.cfg.Firewall
	if f == nil || !f.Links || !walled(w, peer) {
		return false
	}
	since := w.k.Now() - w.danced - f.At - f.For
	return since >= 0 && since < f.Busy
}

// leg is a way from a host to a listener for links between procs.
type leg struct {
	from, to  wire.HostRank
	transport string
}

// tryListeners tries at the start whether the listeners for links to procs are reached, as nodes do.
// Without a firewall nothing depends on that.
func tryListeners(h *host) {
	w := h.s.w
	if f := w.cfg.Firewall; f == nil || !f.Links || h.s.cfg.Foreign != nil {
		return
	}
	end := w.time().Add(dynamic.DialsLimit)
	for i, x := range h.s.job.Hosts {
		peer, list := wire.HostRank(i), h.s.with(x.Client).endpoints()
		if peer == h.rank || len(list) == 0 || !agent.ConnectAtStart(len(h.s.job.Hosts), h.rank, peer) {
			continue
		}
		of := func(candidate int) leg { return leg{h.rank, peer, list[candidate].Transport} }
		s := w.dialling(dynamic.ConnectPlan(len(list)), h.ends)
		s.dial = func(step dynamic.DialStep, answer func(dynamic.DialResult)) {
			limit := dynamic.FirstLimit(end.Sub(w.time()), make([]bool, len(list)-step.Candidate))
			reachProc(h, peer, limit, answer, func() { answer(dynamic.DialResult{}) })
		}
		s.over = func(last dynamic.DialStep) {
			if last.Action == dynamic.KeepLink {
				h.s.listeners[of(last.Candidate)] = dynamic.Answered
			}
			for _, m := range s.FailedCandidates() {
				h.s.listeners[of(m.Candidate)] = dynamic.Unheard
			}
		}
		s.begin()
	}
}

// mustDial checks that a dial of a listener for links to procs has taken no longer than it may, and
// that it has not failed before that. Whoever has not answered at the start is waited for less long.
func mustDial(w *Simulation, at leg, state dynamic.ListenerState, took time.Duration, a dynamic.DialResult) {
	if a.Failure&dynamic.TooSlow == 0 {
		return
	}
	least, most := 4*time.Second, 5*time.Second
	switch state {
	case dynamic.Answered:
		least, most = 9*time.Second, 11*time.Second
	case dynamic.Unheard:
		least, most = time.Second, 3*time.Second
	case dynamic.Untried:
	}
	if took < least || took > most {
		disorder(w, "host %d has waited for %v for the listener for links of host %d", at.from, took, at.to)
	}
}

// firewallHits records a firewall that lasts longer than a host waits for another one.
func firewallHits(w *Simulation, h *host, peer wire.HostRank) {
	if f := w.cfg.Firewall; f.For < patience(h, peer) || w.firewalled || f.Only && !mustRoute(h.s, h.s.job.Hosts[peer].Client) {
		return
	}
	w.firewalled = true
	what := fmt.Sprintf("the way to host %d", peer)
	w.hits = append(w.hits, FaultHit{Fault: Fault{Kind: "firewall"}, What: what, At: w.k.Now(), Event: w.k.Events()})
}

// patience is how long a host at least waits for another one that does not answer, less the longest
// pause between dials.
func patience(h *host, peer wire.HostRank) time.Duration {
	client := h.s.job.Hosts[peer].Client
	switch atStart := !h.channels.OnDemand(h.rank, peer); {
	case atStart && client != h.s.rank:
		return 17 * time.Second
	case mustRoute(h.s, client) && h.s.w.cfg.Firewall.Drops:
		return 8 * time.Second
	}
	return 3 * time.Second
}

// longest is how long a host at most waits for another one that never answers.
const longest = 25 * time.Second

// mustGiveUp checks that a host does not wait for longer for another one, which it has dialled
// since began, than it may.
func mustGiveUp(h *host, peer wire.HostRank, began time.Time) {
	w := h.s.w
	if f := w.cfg.Firewall; !walled(w, peer) || f.For < Ever || f.Links || f.Only && !f.Must || w.wrong != nil {
		return
	}
	most := longest
	switch own := h.s.job.Hosts[peer].Client == h.s.rank; {
	case h.channels.OnDemand(h.rank, peer):
		most = longest / 2
	case own && w.cfg.DialFail == 0 && mustRoute(h.s, h.s.rank) && w.cfg.Firewall.Drops: // by two rounds of dials
		most = 10500 * time.Millisecond
	case own && w.cfg.DialFail == 0:
		most = 5500 * time.Millisecond
	}
	if took := w.time().Sub(began); took > most {
		w.wrong = fmt.Errorf("%w: host %d has waited for %v for host %d, which does not answer", ErrLate, h.rank, took, peer)
	}
}
