package lifetime

import "time"

// Alarm calls a function at the deadline of a state machine. The lock of the machine also guards
// the Alarm. The zero value is ready.
type Alarm struct{ timer *time.Timer }

// Set makes f run at a time, in a goroutine of its own, instead of the function set before, unless
// that has begun already. With ok false nothing is called.
func (a *Alarm) Set(at time.Time, ok bool, f func()) {
	if a.timer != nil {
		a.timer.Stop()
	}
	if ok {
		a.timer = time.AfterFunc(time.Until(at), f)
	}
}
