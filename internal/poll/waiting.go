package poll

import "time"

// Waiting is how a Spinner waits at the moment.
type Waiting struct {
	Budget  time.Duration // of polling, for each wait
	Fixed   bool          // the operator has set it
	Crowded bool          // others want the cores, so that it sleeps at once
	Score   int           // of crowding, 0 to 16
}

// Waiting returns how waits go now. It must not overlap with another call.
func (s *Spinner) Waiting() Waiting {
	return Waiting{Budget: s.budget, Fixed: s.fixed, Crowded: s.Crowded(), Score: s.score}
}
