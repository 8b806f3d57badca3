package lifetime

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAlarm: what was set last is called at its time, and nothing that was set before.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Alarm
		called := make(chan string)
		set := func(after time.Duration, what string) {
			a.Set(time.Now().Add(after), true, func() { called <- what })
		}
		set(time.Second, "replaced by a later one")
		set(2*time.Second, "first")
		if got := <-called; got != "first" {
			t.Errorf("%q was called first", got)
		}
		set(time.Second, "taken back")
		a.Set(time.Time{}, false, nil)
		set(3*time.Second, "replaced by an earlier one")
		set(2*time.Second, "second")
		if got := <-called; got != "second" {
			t.Errorf("%q was called second", got)
		}
	})
}
