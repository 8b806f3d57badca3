package job

import (
	"errors"
	"testing"
	"time"
)

// TestSiteAloneLosesTheServer: once the job runs it ends in order though the server has lost a site
// that lives, and so does the server.
func TestSiteAloneLosesTheServer(t *testing.T) {
	cuts := 0
	for seed := range seeds(60) {
		cfg := twoSites(ring)
		cfg.Direct = seed%2 == 0
		k, w := world(t, seed, cfg)
		var look func()
		cut := false
		look = func() {
			runs := len(w.sites) == 2
			for _, s := range w.sites {
				runs = runs && len(s.procs) > 0
			}
			for _, s := range w.openLinks {
				if runs && s.is(AtClient, AtServer) && s.ends[0].Number == int(seed/2%2) {
					s.l.Cut(errors.New("a network fault"))
					cut = true
				}
			}
			if !cut && w.ended == nil {
				k.After(100*time.Microsecond, look)
			}
		}
		k.After(time.Millisecond, look)
		r := w.Run(bounds)
		if err := errors.Join(append(r.Sites(), r.Procs()...)...); r.Err != nil || err != nil {
			t.Fatalf("seed %d: %v, %v\n%s", seed, r.Err, err, k.Trace())
		}
		if r.Server() != nil {
			t.Fatalf("seed %d: the server: %v", seed, r.Server())
		}
		if cut && w.server.lost != 0 {
			cuts++
		}
	}
	if cuts == 0 {
		t.Error("no connection was cut in time")
	} else {
		t.Logf("%d connections were cut", cuts)
	}
}
