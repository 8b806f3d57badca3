package host

import "time"

// Restart says when a dead plugin may be started again. After a life of at least Healthy
// the first restart is immediate; the waits before further ones double. Zero fields stand
// for the defaults below.
type Restart struct {
	Delay    time.Duration // first wait, 200 ms
	MaxDelay time.Duration // longest wait, 30 s
	Attempts int           // failures in a row after which restarts pause for Cooldown, 5
	Cooldown time.Duration // that pause, 2 min
	Healthy  time.Duration // a life of this length resets the count of failures, 10 s
}

// DefaultCooldown stands for zero in a Restart's Cooldown.
const DefaultCooldown = 2 * time.Minute

func (r *Restart) complete() {
	def := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	def(&r.Delay, 200*time.Millisecond)
	def(&r.MaxDelay, 30*time.Second)
	def(&r.Cooldown, DefaultCooldown)
	def(&r.Healthy, 10*time.Second)
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
}

// wait returns how long to wait after so many failures in a row, and whether that is the
// Cooldown. jitter, in [0,1), shortens the wait by up to a fifth, so that plugins that died
// together do not start together.
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
