package unproved

import "time"

// The pauses before sources of wrong secrets are answered.
const (
	firstPause = 100 * time.Millisecond // before the second wrong one; doubled by each further one
	lastPause  = 5 * time.Second
	forget     = time.Minute // without a wrong one
	maxSources = 1024        // that are remembered
)

// Slow remembers who has sent wrong secrets. Its zero value is ready. Only the
// answer to a wrong secret is held back: a right one from the same address, which
// may be that of many, is never slowed.
type Slow struct{ bySource map[Source]wrongs }

type wrongs struct {
	n    int
	last time.Time
}

// Wrong notes a wrong secret and gives how long its sender has to wait for the
// answer: nothing the first time, as people mistype, then longer each time.
func (s *Slow) Wrong(from Source, now time.Time) time.Duration {
	w := s.bySource[from]
	if w.n > 0 && now.Sub(w.last) >= forget {
		w.n = 0
	}
	w.n++
	w.last = now
	s.remember(from, w)
	pause := firstPause
	for range w.n - 2 {
		if pause *= 2; pause >= lastPause {
			return lastPause
		}
	}
	if w.n == 1 {
		return 0
	}
	return pause
}

// Times is how many wrong secrets have come from a source lately.
func (s *Slow) Times(from Source) int { return s.bySource[from].n }

// remember makes room by forgetting who has been quiet longest.
func (s *Slow) remember(from Source, w wrongs) {
	if s.bySource == nil {
		s.bySource = make(map[Source]wrongs)
	}
	if _, known := s.bySource[from]; !known && len(s.bySource) >= maxSources {
		var quiet Source
		var since time.Time
		for source, o := range s.bySource {
			if since.IsZero() || o.last.Before(since) {
				quiet, since = source, o.last
			}
		}
		delete(s.bySource, quiet)
	}
	s.bySource[from] = w
}
