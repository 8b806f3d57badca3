package worlds

import (
	"fmt"
	"testing"
)

// TestDeaths has a root die in each step, on each side, and wants the others to go on.
func TestDeaths(t *testing.T) {
	if *only > 0 {
		d := NewDeath(*only)
		v := d.Run(3000)
		t.Logf("%v\n%s\n%s: %v", d, v.Trace, v.Oracle, v.Err)
		return
	}
	covered := map[string]int64{}
	for seed := uint64(1); seed <= 300**factor; seed++ {
		d := NewDeath(seed)
		v := d.Run(0)
		if v.Oracle != "" {
			t.Errorf("seed %d: %v: %s: %v", seed, d, v.Oracle, v.Err)
		}
		for name, n := range v.Covered {
			covered[name] += n
		}
	}
	for step := range lastStep + 1 {
		for _, side := range []string{"accept", "connect"} {
			d := &Death{Step: step, Accepts: side == "accept"}
			name := fmt.Sprintf("died in step %s %d", side, step)
			if covered[name] == 0 && !d.notIts() {
				t.Errorf("nobody %s", name)
			}
			t.Logf("%s: %d", name, covered[name])
		}
	}
	t.Log(covered)
}
