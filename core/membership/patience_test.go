package membership

import (
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	for start, want := range map[time.Duration]time.Duration{time.Minute: 58 * time.Second, 16 * time.Second: 14 * time.Second, 8 * time.Second: 7 * time.Second} {
		if got := Patience(start); got != want {
			t.Errorf("%v of %v, want %v", got, start, want)
		}
	}
}
