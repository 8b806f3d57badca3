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

// Search dials and waits as a dynamic.Search decides.
type Search struct {
	*dynamic.Search
	Lock        sync.Locker // of its PairLinks; nil: it has none
	Ways        []routes.Way
	Dial        func(context.Context, routes.Way, dynamic.SearchStep) (link.Link, error)
	Failed      func(routes.Way, error) // called for each way that failed; may be nil
	RoundFailed func()                  // is called when all have failed and will be tried again; may be nil
	Holds       func()                  // is called when the link is made but cannot be used yet; may be nil
}

// Run searches until there is a link, or there will be none, or ctx ends, which counts as GiveUp.
func (s *Search) Run(ctx context.Context) (l link.Link, by routes.Way, last dynamic.SearchStep) {
	step := s.step(func() dynamic.SearchStep { return s.Begin(time.Now()) })
	for {
		switch step.Action {
		case dynamic.DialWay:
			if ctx.Err() != nil {
				return nil, by, dynamic.SearchStep{Action: dynamic.GiveUp}
			}
			var err error
			by = s.Ways[step.Way]
			known := len(s.FailedWays())
			l, err = s.Dial(ctx, by, step)
			step = s.step(func() dynamic.SearchStep { return s.Answered(time.Now(), AnswerOf(err)) })
			if s.Failed != nil && len(s.FailedWays()) > known {
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
				return nil, by, dynamic.SearchStep{Action: dynamic.GiveUp}
			}
			step = s.step(func() dynamic.SearchStep { return s.Waited(time.Now()) })
		case dynamic.CloseLink:
			_ = l.Close()
			return nil, by, step
		default:
			return l, by, step
		}
	}
}

func (s *Search) step(f func() dynamic.SearchStep) dynamic.SearchStep {
	if s.Lock != nil {
		s.Lock.Lock()
		defer s.Lock.Unlock()
	}
	return f()
}

// Reasons returns why each way has failed; empty if there was no way.
func (s *Search) Reasons() string {
	var list []string
	for _, m := range s.FailedWays() {
		w := s.Ways[m.Way]
		list = append(list, fmt.Sprintf("%s at %s: %v", w.T.Name, w.Address, m.Err))
	}
	return strings.Join(list, "; ")
}

// Errors joins the errors of all ways that have failed, in one line.
func (s *Search) Errors() error {
	var all joined
	for _, m := range s.FailedWays() {
		w := s.Ways[m.Way]
		all = append(all, fmt.Errorf("%s at %s: %w", w.T.Name, w.Address, m.Err))
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// joined is what errors.Join makes, but of one line.
type joined []error

func (j joined) Error() string {
	var list []string
	for _, err := range j {
		list = append(list, err.Error())
	}
	return strings.Join(list, "; ")
}

func (j joined) Unwrap() []error { return j }
