package job

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
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
