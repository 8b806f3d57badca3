package worlds

import "testing"

// TestCrowd has 100 procs call a port at once.
func TestCrowd(t *testing.T) {
	if *only > 0 {
		c := NewCrowd(*only, 100)
		v := c.Run(3000)
		t.Logf("%v\n%s\n%s: %v", c, v.Trace, v.Oracle, v.Err)
		return
	}
	covered := map[string]int64{}
	for seed := uint64(1); seed <= 6**factor; seed++ {
		c := NewCrowd(seed, 100)
		v := c.Run(0)
		if v.Oracle != "" {
			t.Errorf("%v: %s: %v", c, v.Oracle, v.Err)
		}
		for name, n := range v.Covered {
			covered[name] += n
		}
	}
	for _, name := range []string{"callers served", "callers that ended while connected", "callers of a closed port", "callers that found it crowded"} {
		if covered[name] == 0 {
			t.Errorf("there are no %s", name)
		}
	}
	t.Log(covered)
}
