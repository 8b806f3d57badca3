package job

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// search carries out a search for a link on the kernel, as a node does.
type search struct {
	*dynamic.Search
	k     *kernel.Kernel
	dial  func(step dynamic.SearchStep, answer func(dynamic.Answer))
	rests func()                        // may be nil
	over  func(last dynamic.SearchStep) // the search has ended
	gone  func() bool                   // nobody searches any more: over is not called
	left  func()                        // is told of that; may be nil
	unmet int                           // dials that have failed by chance
}

var (
	errNotListening = errors.New("connection refused")
	errBroken       = errors.New("the connection broke")
	errRefused      = errors.New("refused")
)

func (s *search) now() time.Time { return epoch.Add(s.k.Now()) }

func (s *search) begin() { s.carryOut(s.Begin(s.now())) }

func (s *search) carryOut(step dynamic.SearchStep) {
	switch step.Action {
	case dynamic.DialWay:
		s.dial(step, func(a dynamic.Answer) {
			s.unlessGone(func() { s.carryOut(s.Answered(s.now(), a)) })
		})
	case dynamic.Pause, dynamic.Rest:
		if step.Action == dynamic.Rest && s.rests != nil {
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

// said is the answer that a peer has refused the link.
func said(v dynamic.Verdict) dynamic.Answer { return dynamic.Answer{Err: errRefused, Verdict: v} }

// unheard is the answer of a dial that nobody has heard.
func unheard(f dynamic.Fault) dynamic.Answer { return dynamic.Answer{Err: errNotListening, Fault: f} }

// mostUnmet is how many dials of a search fail by chance: no more, or a job without faults might not
// begin in time.
const mostUnmet = 24

// fails gives what becomes of a dial by chance, if it fails.
func (s *search) fails(chance float64) (a dynamic.Answer, failing bool) {
	if s.unmet == mostUnmet && chance < 1 {
		return a, false
	}
	if a, failing = fails(s.k, chance); failing {
		s.unmet++
	}
	return a, failing
}

// fails gives what becomes of a dial by chance, if it fails.
func fails(k *kernel.Kernel, chance float64) (a dynamic.Answer, failing bool) {
	if !k.Chance(chance) {
		return a, false
	}
	return unheard([]dynamic.Fault{0, dynamic.NotListening, dynamic.NoRoom}[k.Rand().IntN(3)]), true
}
