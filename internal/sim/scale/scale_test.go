package scale

import (
	"math/bits"
	"testing"
)

func measure(t *testing.T, clients, procs int) Report {
	t.Helper()
	r, err := Run(clients, procs, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range r.Operations {
		t.Logf("%d clients, %d procs: %+v", clients, procs, op)
	}
	t.Logf("%d bytes and %d of stack per proc, startup %v", r.PerProc, r.Stacks, r.Startup)
	return r
}

// TestGrowth: between sites nothing depends on the number of procs; inside of
// them depth grows like a tree's.
func TestGrowth(t *testing.T) {
	small, large := measure(t, 32, 320), measure(t, 32, 3200)
	for i, s := range small.Operations {
		l := large.Operations[i]
		if s.Messages != l.Messages || s.PerSite != l.PerSite || s.FarDepth != l.FarDepth {
			t.Errorf("%s: between sites %+v with 320 procs, %+v with 3200", s.Name, s, l)
		}
		// Up the tree, down the tree, and the site's master may be the last to know.
		if most := 3 * (1 + bits.Len(3200/32)); l.Depth > most {
			t.Errorf("%s: %d messages deep inside a site, more than %d", l.Name, l.Depth, most)
		}
	}
}
