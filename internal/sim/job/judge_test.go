package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// ended is a world of two sites that have ended, in order or not.
func ended(t *testing.T, change func(w *Simulation)) error {
	t.Helper()
	_, w := world(t, 1, twoSites(ring))
	for _, s := range w.sites {
		s.finished = true
	}
	change(w)
	return w.judge()
}

func failed(s *site) {
	s.finished, s.err = false, fmt.Errorf("%w: for a test", ErrFailed)
}

func TestJudge(t *testing.T) {
	bad := errors.New("bad")
	for name, c := range map[string]struct {
		change func(w *Simulation)
		want   error
	}{
		"all is well":         {func(*Simulation) {}, nil},
		"all have failed":     {func(w *Simulation) { failed(w.sites[0]); failed(w.sites[1]); w.server.err = bad }, nil},
		"one finished before": {func(w *Simulation) { failed(w.sites[1]); w.server.err = bad }, nil},
		"no error, not finished": {func(w *Simulation) {
			w.sites[0].finished = false
		}, ErrDisorder},
		"an error of another kind": {func(w *Simulation) { w.sites[0].err = bad; w.server.err = bad }, ErrDisorder},
		"the server is happy":      {func(w *Simulation) { failed(w.sites[0]) }, ErrDisorder},
		"a deadly fault that nobody noticed": {func(w *Simulation) {
			w.hit(Fault{Kind: CrashNode}, "a node", true)
		}, ErrDisorder},
		"a fault that may pass": {func(w *Simulation) { w.hit(Fault{Kind: CutLink}, "a link", false) }, nil},
	} {
		if err := ended(t, c.change); !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReactionIsBounded: all parts have failed, but late, or after too many events.
func TestReactionIsBounded(t *testing.T) {
	for _, c := range []struct {
		took   time.Duration
		events int
		ready  bool
		again  time.Duration // when a second fault hits
		dead   bool          // the server
		want   error
	}{
		{50 * time.Millisecond, 100, true, 0, false, ErrLate},
		{50 * time.Millisecond, 100, true, 49 * time.Millisecond, false, nil},
		{50 * time.Millisecond, 100, true, time.Millisecond, false, ErrLate},
		{time.Millisecond, 100, true, 0, false, nil},
		{50 * time.Millisecond, 100, false, 0, false, nil}, // some site waits for one that does not join
		{2 * time.Minute, 100, false, 0, false, ErrLate},
		{time.Millisecond, 60_000, true, 0, false, ErrLate},
		{time.Millisecond, 60_000, true, 0, true, nil}, // the program goes on meanwhile
	} {
		err := ended(t, func(w *Simulation) {
			w.broke, w.hits = &moment{ready: c.ready}, []FaultHit{{At: c.again, Deadly: true}}
			w.server.err, w.server.dead = errors.New("failed"), c.dead
			k := kernel.New(1)
			for i := range c.events {
				k.After(c.took*time.Duration(i+1)/time.Duration(c.events), func() {})
			}
			if err := k.Run(1e6, time.Hour, func() bool { return false }); err != nil {
				t.Fatal(err)
			}
			w.k = k
		})
		if !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestStuckJobSaysWhoWaits: a program that cannot end.
func TestStuckJobSaysWhoWaits(t *testing.T) {
	k, w := world(t, 1, twoSites(func(e Env) error {
		if e.World().Rank() == 3 {
			return nil
		}
		return ring(e)
	}))
	err := w.Run(Bounds{Events: 1e6, Time: time.Minute}).Err
	if !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "rank 4 waits for a link\n") || !strings.Contains(err.Error(), "recv peer=3") {
		t.Errorf("%v\n%s", err, k.Trace())
	}
}

// TestJobsMustBeTheSame: a client that derived another job is found.
func TestJobsMustBeTheSame(t *testing.T) {
	_, w := world(t, 1, twoSites(ring))
	own := []startup.ClientInfo{{Own: true}, {Own: true}}
	a := &startup.Job{Self: 0, Clients: own, DataLen: 7, Procs: startup.ListProcs(make([]startup.ProcInfo, 5)...)}
	b := &startup.Job{Self: 1, Clients: own, DataLen: 7, Procs: startup.ListProcs(make([]startup.ProcInfo, 5)...)}
	w.begin(a)
	if w.begin(b); w.fault() != nil {
		t.Errorf("they differ in Self only: %v", w.fault())
	}
	b.Procs = startup.ListProcs(append(make([]startup.ProcInfo, 4), startup.ProcInfo{Host: 1})...)
	if w.begin(b); !errors.Is(w.fault(), ErrDisorder) {
		t.Errorf("they differ: %v", w.fault())
	}
}
