package watchdog

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBarksWhenNobodyStopsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		barked := make(chan time.Time, 1)
		begin := time.Now()
		start(Limit, func() { barked <- time.Now() })
		if after := (<-barked).Sub(begin); after != Limit {
			t.Errorf("after %v", after)
		}
	})
}

func TestIsQuietOnceStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		barks := 0
		stop := start(Limit, func() { barks++ })
		stop()
		<-time.After(2 * Limit)
		if synctest.Wait(); barks > 0 {
			t.Error("it barks after its end")
		}
		Start()()
		<-time.After(2 * Limit)
	})
}

func TestBarkNamesTheLimit(t *testing.T) {
	defer func() {
		if why := recover(); why != "watchdog: one input has taken more than 10s" {
			t.Error(why)
		}
	}()
	bark()
}
