package host

import "time"

// Restart says when a dead plugin may be started again. The first restart after
// an uneventful life is immediate; the waits between further ones double.
// Fields that are zero have defaults.
type Restart struct {
	Delay    time.Duration // first wait, 200 ms
	MaxDelay time.Duration // longest wait, 30 s
	Attempts int           // failures in a row that open the breaker, 5
	Cooldown time.Duration // wait while the breaker is open, 2 min
	Healthy  time.Duration // a life this long is uneventful, 10 s
}

func (r *Restart) complete() {
	def := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	def(&r.Delay, 200*time.Millisecond)
	def(&r.MaxDelay, 30*time.Second)
	def(&r.Cooldown, 2*time.Minute)
	def(&r.Healthy, 10*time.Second)
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
}

// wait is how long to wait after so many failures in a row, and whether the
// breaker is open. jitter, in [0,1), spreads plugins that died together: up to a
// fifth is taken off.
func (r *Restart) wait(failures int, jitter float64) (d time.Duration, open bool) {
	switch {
	case failures <= 1:
		return 0, false
	case failures >= r.Attempts:
		return r.Cooldown, true
	}
	d = r.Delay
	for range failures - 2 {
		if d *= 2; d >= r.MaxDelay {
			d = r.MaxDelay
			break
		}
	}
	return d - time.Duration(float64(d)*jitter/5), false
}
