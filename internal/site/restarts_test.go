package site

import (
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/host"
)

// A plugin that died too often is started again while the links that it lost are still dialled.
func TestRestartsFitResume(t *testing.T) {
	for name, c := range map[string]struct {
		resume time.Duration
		routes []config.Route
		want   time.Duration
	}{
		"nothing resumes":     {0, []config.Route{{Site: "*", Prefer: []string{"x"}}}, 0},
		"the usual limit":     {0, []config.Route{{Site: "*", Prefer: []string{"x"}, Resume: true}}, 10 * time.Second},
		"a short limit":       {3 * time.Second, []config.Route{{Site: "beta", Prefer: []string{"tcp", "x"}, Resume: true}}, time.Second},
		"a long limit":        {time.Hour, []config.Route{{Site: "*", Prefer: []string{"x"}, Resume: true}}, host.DefaultCooldown},
		"another's link":      {0, []config.Route{{Site: "*", Prefer: []string{"tcp"}, Resume: true}}, 0},
		"one of several does": {0, []config.Route{{Site: "beta", Prefer: []string{"x"}}, {Site: "*", Prefer: []string{"x"}, Resume: true}}, 10 * time.Second},
	} {
		job := &config.Job{Limits: config.Limits{Resume: c.resume}}
		if got := restarts(job, &config.Site{Routes: c.routes}, "x").Cooldown; got != c.want {
			t.Errorf("%s: the pause is %v, not %v", name, got, c.want)
		}
	}
}
