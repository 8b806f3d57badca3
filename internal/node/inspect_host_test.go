package node

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
)

// TestLinksOfChannels: what a channel is made of at each end, and that it was lost and
// made again.
func TestLinksOfChannels(t *testing.T) {
	r := config.Route{Prefer: []string{"tcp"}, DataPlane: []string{"ring"}, Resume: true}
	all := start(t, route(testJob("linked", 1, 1), r))
	_, j := survey(t, all, links.Request{})
	if len(j.Channels) != 2 || j.Channels[0].From == j.Channels[1].From {
		t.Fatalf("%+v", j.Channels)
	}
	for _, c := range j.Channels {
		if c.Transport != "tcp" || c.Plane != "ring" || !strings.Contains(c.PlaneReason, "config wants ring") ||
			c.State != links.StateLinked || !c.Resumable || c.Resumes != 0 || c.Lost != "" {
			t.Errorf("%+v", c)
		}
	}
	if err := unix.Kill(all[1].n.routes.Transport("tcp").Plugin.Status().PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for again := 0; again < 2; { // the answers themselves take time
		_, j = survey(t, all, links.Request{})
		again = 0
		for _, c := range j.Channels {
			switch {
			case c.Resumes > 0 && c.State == links.StateLinked:
				again++
				if c.Lost == "" || c.Transport != "tcp" || c.Plane != "ring" {
					t.Fatalf("%+v", c)
				}
			case c.State == links.StateEnded || t.Context().Err() != nil:
				t.Fatalf("%+v", c)
			}
		}
	}
}
