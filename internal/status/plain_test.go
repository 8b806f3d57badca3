package status

import (
	"bytes"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/openimpi/impi/internal/links"
)

// TestNothingForTheTerminal: what programs and other sites choose is text, and cannot look like
// lines of ours.
func TestNothingForTheTerminal(t *testing.T) {
	evil := "\x1b[31mred\x1b]0;title\a\n\n  probable deadlock: forged\x00\u202e"
	j := job(waits(0, "mpi.Recv"+evil, time.Second, links.Partner{What: "recv", Comm: evil}), links.Proc{Rank: 1, State: links.ProcEnded, Ended: evil},
		links.Proc{Rank: 2, State: links.ProcRunning, Silent: evil})
	j.Name, j.Sites[0].Name, j.Sites[0].Problem = evil, evil, evil
	r := &Report{Jobs: []Job{{Job: *j}}}
	var b bytes.Buffer
	write(&b, r)
	s := newScreen(nil, time.Second)
	s.Update(tea.WindowSizeMsg{Width: 1000, Height: 10})
	s.Update(look{r, time.Now()})
	for name, text := range map[string]string{"status": b.String(), "top": s.draw()} {
		if strings.ContainsAny(text, "\x1b\a\x00\u202e") {
			t.Errorf("%s: %q", name, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "  probable deadlock") {
				t.Errorf("%s has a line that is not its own: %q", name, line)
			}
		}
	}
}
