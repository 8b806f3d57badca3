package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// A plugin one version older or newer makes links like any other; the log, its status and
// the output for operators say what it lacks.
func TestProtocolVersions(t *testing.T) {
	for _, c := range []struct {
		mode          string
		spoken, known int
		lacks         []string
		warns         []string
	}{
		{"", 2, 2, nil, nil},
		{"protocols 1", 1, 1, []string{"health", "protocols"}, []string{"older version", `"node":2`, `"plugin":1`, "health: the transport cannot say"}},
		{"protocols 1 2", 2, 2, nil, nil},
		// The next release, which still speaks our version: either the version ranges of
		// both meet, or the plugin states its newest version to everybody and the rest in
		// Info.
		{"protocols 2 3", 2, 3, nil, []string{"newer version", `"node":2`, `"plugin":3`, `"spoken":2`, "update impi-node"}},
		{"protocols 3", 2, 3, nil, []string{"newer version", `"node":2`, `"plugin":3`, `"spoken":2`}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			w := builtin("tcp", c.mode)
			p := w.start(t)
			a, b := pair(t, p, listen(t, p))
			exchange(t, a, b)
			if s := p.Status(); s.Protocol != c.spoken || !slices.Equal(s.Lacks, c.lacks) || s.State != StateHealthy {
				t.Errorf("status %+v", s)
			}
			if about := p.About(); about.Protocol != c.spoken || about.Newest != c.known || len(about.Lacks) != len(c.lacks) {
				t.Errorf("%+v", about)
			}
			if c.warns != nil {
				w.log.wait(t, append(c.warns, `"@level":"warn"`)...)
			}
			w.log.mu.Lock() // the plugin may be logging
			if c.warns == nil && w.log.has(`"@level":"warn"`) {
				t.Errorf("a warning without a reason:\n%s", w.log.text.String())
			}
			w.log.mu.Unlock()
			// The process after a reload speaks the same version.
			if err := p.Reload(soon(t)); err != nil {
				t.Fatal(err)
			}
			if s := p.Status(); s.Protocol != c.spoken {
				t.Errorf("after a reload: %+v", s)
			}
		})
	}
}

// The plugin is told which versions this node speaks, not the oldest that it would accept.
func TestOffering(t *testing.T) {
	got := offering([]string{"A=1", offer + "=3,1,2", "B=2"})
	if want := []string{"A=1", "B=2", offer + "=1,2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Health is asked for regularly, and its changes become states.
func TestHealth(t *testing.T) {
	w := builtin("tcp", "")
	w.Heartbeat = -1 // we do it
	p := w.start(t)
	feel := func(address string) {
		t.Helper()
		if _, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: address}); err == nil || !strings.Contains(err.Error(), "felt") {
			t.Fatal(err)
		}
		problem, err := p.cur.health(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		p.felt(p.cur, problem)
	}
	w.reach(t, StateHealthy)
	feel("ail")
	if s := w.reach(t, StateDegraded); s.Problem != "the buffers are small" {
		t.Errorf("%+v", s)
	}
	w.log.wait(t, `"@level":"warn"`, "degraded", "the buffers are small")
	a, b := pair(t, p, listen(t, p)) // it works
	exchange(t, a, b)
	feel("heal")
	if s := w.reach(t, StateHealthy); s.Problem != "" {
		t.Errorf("%+v", s)
	}
	w.log.wait(t, `"@level":"info"`, "well again")
}

// A plugin of version 1 is not asked for its health, which that version does not have.
func TestHealthOfOldPlugin(t *testing.T) {
	p := builtin("tcp", "protocols 1").start(t)
	if problem, err := p.cur.health(soon(t)); problem != "" || err != nil {
		t.Errorf("%q, %v", problem, err)
	}
	if _, err := p.cur.rpc.Health(soon(t), &proto.HealthRequest{Call: p.cur.call(soon(t))}); err == nil {
		t.Error("it answers Health, so that the test proves nothing")
	}
}
