package dial

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Dialing dials and waits as a dynamic.DialPlan decides.
type Dialing struct {
	*dynamic.DialPlan
	Lock        sync.Locker // of its PairLinks; nil: it has none
	Candidates  []routes.Candidate
	Dial        func(context.Context, routes.Candidate, dynamic.DialStep) (link.Link, error)
	Failed      func(routes.Candidate, error) // called for each candidate that failed; may be nil
	RoundFailed func()                        // is called when all have failed and will be tried again; may be nil
	Holds       func()                        // is called when the link is made but cannot be used yet; may be nil
}

// Run dials until there is a link, or there will be none, or ctx ends, which counts as GiveUp.
func (s *Dialing) Run(ctx context.Context) (l link.Link, by routes.Candidate, last dynamic.DialStep) {
	step := s.step(func() dynamic.DialStep { return s.Begin(time.Now()) })
	for {
		switch step.Action {
		case dynamic.DialCandidate:
			if ctx.Err() != nil {
				return nil, by, dynamic.DialStep{Action: dynamic.GiveUp}
			}
			var err error
			by = s.Candidates[step.Candidate]
			known := len(s.FailedCandidates())
			l, err = s.Dial(ctx, by, step)
			step = s.step(func() dynamic.DialStep { return s.Dialled(time.Now(), ResultOf(err)) })
			if s.Failed != nil && len(s.FailedCandidates()) > known {
				s.Failed(by, err)
			}
		case dynamic.Pause, dynamic.PauseAfterRound:
			if step.Action == dynamic.PauseAfterRound && s.RoundFailed != nil {
				s.RoundFailed()
			}
			if l != nil && s.Holds != nil {
				s.Holds()
			}
			select {
			case <-time.After(step.Wait):
			case <-ctx.Done():
				if l != nil {
					_ = l.Close()
				}
				return nil, by, dynamic.DialStep{Action: dynamic.GiveUp}
			}
			step = s.step(func() dynamic.DialStep { return s.Waited(time.Now()) })
		case dynamic.CloseLink:
			_ = l.Close()
			return nil, by, step
		default:
			return l, by, step
		}
	}
}

func (s *Dialing) step(f func() dynamic.DialStep) dynamic.DialStep {
	if s.Lock != nil {
		s.Lock.Lock()
		defer s.Lock.Unlock()
	}
	return f()
}

// Reasons returns why each candidate has failed; empty if there was none.
func (s *Dialing) Reasons() string {
	var list []string
	for _, m := range s.FailedCandidates() {
		w := s.Candidates[m.Candidate]
		list = append(list, fmt.Sprintf("%s at %s: %v", w.Transport.Name, w.Address, m.Err))
	}
	return strings.Join(list, "; ")
}

// Errors joins the errors of all candidates that have failed, in one line.
func (s *Dialing) Errors() error {
	var all joined
	for _, m := range s.FailedCandidates() {
		w := s.Candidates[m.Candidate]
		all = append(all, fmt.Errorf("%s at %s: %w", w.Transport.Name, w.Address, m.Err))
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// joined is like errors.Join, with its text on one line.
type joined []error

func (j joined) Error() string {
	var list []string
	for _, err := range j {
		list = append(list, err.Error())
	}
	return strings.Join(list, "; ")
}

func (j joined) Unwrap() []error { return j }
