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
}

var (
	errNotListening = errors.New("connection refused")
	errNoAnswer     = errors.New("no answer in time")
	errBroken       = errors.New("the connection broke")
	errRefused      = errors.New("refused")
)

func (s *dialling) now() time.Time { return epoch.Add(s.k.Now()) }

func (s *dialling) begin() { s.carryOut(s.Begin(s.now())) }

func (s *dialling) carryOut(step dynamic.DialStep) {
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
		s.over(step)
	}
}

func (s *dialling) unlessGone(f func()) {
	switch {
	case !s.gone():
		f()
	case s.left != nil:
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
	Busy  time.Duration // after that, how long the host greets nobody, as it is busy
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

// blocked answers a dial, which may take that long, if a firewall is in its way, and reports whether it is. A connection that
// the firewall drops is made when there is no firewall any more.
func blocked(h *host, peer wire.HostRank, began time.Time, limit time.Duration, answer func(dynamic.DialResult)) bool {
	w := h.s.w
	if !walled(w, peer) {
		return false
	}
	f := w.cfg.Firewall
	left := began.Add(f.For).Sub(w.time())
	switch {
	case left <= -f.Busy:
		return false
	case left <= 0:
		w.k.After(w.k.Between(0, w.cfg.Links.Channel.Delay), func() { answer(unheard(dynamic.NoRoom)) })
		return true
	}
	firewallHits(w, h, peer)
	switch {
	case !f.Drops:
		w.k.After(w.k.Between(0, w.cfg.Links.Channel.Delay), func() { answer(unheard(dynamic.Unconnected | dynamic.OutOfReach)) })
	case left < limit: // it is dialled at once when the firewall is gone
		w.k.After(left, func() { answer(unheard(dynamic.NoRoom)) })
	default:
		w.k.After(limit, func() { answer(unheard(dynamic.Unconnected | dynamic.TooSlow)) })
	}
	return true
}

// firewallHits records a firewall that lasts longer than a host waits for another one.
func firewallHits(w *Simulation, h *host, peer wire.HostRank) {
	if w.cfg.Firewall.For < patience(h, peer) || w.firewalled {
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
	if !walled(w, peer) || w.cfg.Firewall.For < Ever || w.wrong != nil {
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
