package watchdog

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestExpiresWhenNobodyStopsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expired := make(chan time.Time, 1)
		begin := time.Now()
		start(Limit, func() { expired <- time.Now() })
		if after := (<-expired).Sub(begin); after != Limit {
			t.Errorf("after %v", after)
		}
	})
}

func TestIsQuietOnceStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expires := 0
		stop := start(Limit, func() { expires++ })
		stop()
		<-time.After(2 * Limit)
		if synctest.Wait(); expires > 0 {
			t.Error("it expires after its end")
		}
		Start()()
		<-time.After(2 * Limit)
	})
}

func TestExpiryNamesTheLimit(t *testing.T) {
	defer func() {
		if why := recover(); why != "watchdog: one input has taken more than 10s" {
			t.Error(why)
		}
	}()
	expire()
}
