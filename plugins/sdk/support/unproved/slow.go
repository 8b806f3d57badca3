package unproved

import "time"

// Delays of answers to wrong secrets.
const (
	firstPause = 100 * time.Millisecond // for the second wrong secret; doubled for each further one
	lastPause  = 5 * time.Second
	forget     = time.Minute // after this time without a wrong secret, a source is forgotten
	maxSources = 1024        // sources that are remembered
)

// Slow remembers which sources have sent wrong secrets. Its zero value is ready. Only the answer to
// a wrong secret is delayed, never the answer to a right one: several processes may share an
// address.
type Slow struct{ bySource map[Source]wrongs }

type wrongs struct {
	n    int
	last time.Time
}

// Wrong records a wrong secret and returns the delay of the answer: none the first time, since
// people mistype, then longer each time.
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

// Times returns how many wrong secrets a source has sent lately.
func (s *Slow) Times(from Source) int { return s.bySource[from].n }

// remember adds a source; if there are too many it drops the one that has been quiet
// longest.
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
