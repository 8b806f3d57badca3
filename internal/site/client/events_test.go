package client

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/openimpi/impi/core/ending"
)

// TestReportsOfClocksThatDiffer: hosts whose clocks are hours apart agree on which of two procs
// ended first, since reports say how long ago something was, and never when.
func TestReportsOfClocksThatDiffer(t *testing.T) {
	head := time.Unix(1_700_000_000, 0)
	for _, off := range []time.Duration{0, -7 * time.Hour, 7 * time.Hour} {
		there := head.Add(off) // the same moment, on another host
		tell := func(ago time.Duration) *ending.Failure {
			b := reportOf(&ending.Failure{Text: "a proc died", Precedence: ending.Died, At: there.Add(-ago)}, false, there)
			var r hostReport
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatal(err)
			}
			return r.failure(head)
		}
		own := &ending.Failure{Text: "a proc of the head died", Precedence: ending.Died, At: head.Add(-2 * time.Second)}
		if earlier := tell(3 * time.Second); !earlier.Explains(own) || own.Explains(earlier) {
			t.Errorf("off by %v: what was 3 s ago there does not come before what was 2 s ago here", off)
		}
		if later := tell(time.Second); later.Explains(own) || !own.Explains(later) {
			t.Errorf("off by %v: what was 1 s ago there comes before what was 2 s ago here", off)
		}
	}
	never := &ending.Failure{Text: "a timeout"}
	var r hostReport
	if err := json.Unmarshal(reportOf(never, false, head), &r); err != nil || !r.failure(head).At.IsZero() {
		t.Errorf("what is no proc's end got a time: %+v, %v", r, err)
	}
}
