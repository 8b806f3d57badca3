package polling

import "time"

// Waiting describes how a Spinner waits at the moment.
type Waiting struct {
	Budget         time.Duration // time of polling, for each wait
	Fixed          bool          // the operator has set Budget
	Oversubscribed bool          // other threads compute: the Spinner sleeps at once
	Score          int           // the score of oversubscription, 0 to 16
}

// Waiting returns how the Spinner waits now. It must not run at the same time as another
// method.
func (s *Spinner) Waiting() Waiting {
	return Waiting{Budget: s.budget, Fixed: s.fixed, Oversubscribed: s.Oversubscribed(), Score: s.score}
}
