package job

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/sim/kernel"
)

type search struct {
	*dynamic.DialPlan
	k     *kernel.Kernel
	dial  func(step dynamic.DialStep, answer func(dynamic.Answer))
	rests func()                      // may be nil
	over  func(last dynamic.DialStep) // called at the end of the search
	gone  func() bool                 // reports whether the searching proc is gone; over is not called then
	left  func()                      // called when the searching proc is gone; may be nil
	unmet int                         // dials that have failed by chance
}

var (
	errNotListening = errors.New("connection refused")
	errBroken       = errors.New("the connection broke")
	errRefused      = errors.New("refused")
)

func (s *search) now() time.Time { return epoch.Add(s.k.Now()) }

func (s *search) begin() { s.carryOut(s.Begin(s.now())) }

func (s *search) carryOut(step dynamic.DialStep) {
	switch step.Action {
	case dynamic.DialCandidate:
		s.dial(step, func(a dynamic.Answer) {
			s.unlessGone(func() { s.carryOut(s.Answered(s.now(), a)) })
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

func (s *search) unlessGone(f func()) {
	switch {
	case !s.gone():
		f()
	case s.left != nil:
		s.left()
	}
}

func said(v dynamic.Verdict) dynamic.Answer { return dynamic.Answer{Err: errRefused, Verdict: v} }

func unheard(f dynamic.Fault) dynamic.Answer { return dynamic.Answer{Err: errNotListening, Fault: f} }

// mostUnmet bounds how many dials of a search fail by chance; with more, a job without faults might
// not start in time.
const mostUnmet = 24

func (s *search) fails(chance float64) (a dynamic.Answer, failing bool) {
	if s.unmet == mostUnmet && chance < 1 {
		return a, false
	}
	if a, failing = fails(s.k, chance); failing {
		s.unmet++
	}
	return a, failing
}

func fails(k *kernel.Kernel, chance float64) (a dynamic.Answer, failing bool) {
	if !k.Chance(chance) {
		return a, false
	}
	return unheard([]dynamic.Fault{0, dynamic.NotListening, dynamic.NoRoom}[k.Rand().IntN(3)]), true
}
