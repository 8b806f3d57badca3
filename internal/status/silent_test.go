package status

import (
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// TestSlowNodes: who asks nodes that have not answered in time is told how to wait longer, and
// nobody else.
func TestSlowNodes(t *testing.T) {
	for problem, want := range map[string]bool{"": false, links.ErrGone.Error(): false, links.ErrSilent.Error(): true} {
		o := &options{Selection: links.NewSelection(), limit: 2 * time.Second}
		j := links.Job{Name: "heat", Sites: []links.SiteState{{Site: links.Site{Name: "alpha"}, Problem: problem}}}
		var out strings.Builder
		if _, err := o.show(&Report{Jobs: []Job{{Job: j}}}, &out, ""); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "within 2s may only be slow") && strings.Contains(out.String(), "-deadline 30s"); got != want {
			t.Errorf("%q:\n%s", problem, &out)
		}
		o.limit = links.MaxDeadline
		out.Reset()
		if _, err := o.show(&Report{Jobs: []Job{{Job: j}}}, &out, ""); err != nil || strings.Contains(out.String(), "-deadline") {
			t.Errorf("%q, after the longest deadline: %v\n%s", problem, err, &out)
		}
	}
}
