package tasks

import "time"

// Alarm calls a function at the deadline of a state machine. Whoever guards the machine guards the
// Alarm too. The zero value is ready.
type Alarm struct{ timer *time.Timer }

// Set has f called at a time, in a goroutine of its own, instead of what was set before, unless that
// has begun already. With ok false nothing is called.
func (a *Alarm) Set(at time.Time, ok bool, f func()) {
	if a.timer != nil {
		a.timer.Stop()
	}
	if ok {
		a.timer = time.AfterFunc(time.Until(at), f)
	}
}
