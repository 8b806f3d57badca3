package dynamic

import (
	"testing"
	"time"
)

// TestFirstLimit: all candidates of a host together take no longer than there is, however many there
// are, and those that stay on the machine take nothing from the others.
func TestFirstLimit(t *testing.T) {
	const here, away = true, false
	for n, local := range [][]bool{{away}, {away, away}, {away, here, away}, {here, away, away, away}} {
		left := DialsLimit
		for i, l := range local {
			limit := FirstLimit(left, local[i:])
			if l == here {
				if limit != DialLimit {
					t.Errorf("%d: the machine's own way has %v", n, limit)
				}
				continue
			}
			left -= limit
			if limit < DialsLimit/time.Duration(len(local)) {
				t.Errorf("%d: way %d has %v", n, i, limit)
			}
		}
		if left != 0 {
			t.Errorf("%d: %v are left", n, left)
		}
	}
	if limit := FirstLimit(0, []bool{away}); limit != leastShare {
		t.Errorf("the last one has %v", limit)
	}
}

func TestListenerDialLimit(t *testing.T) {
	for _, c := range []struct {
		s     ListenerState
		local bool
		want  time.Duration
	}{
		{Untried, false, DialsLimit},
		{Untried, true, DialLimit},
		{Answered, false, DialLimit},
		{Unheard, false, lateDial},
		{Unheard, true, DialLimit},
	} {
		if got := c.s.DialLimit(c.local); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
