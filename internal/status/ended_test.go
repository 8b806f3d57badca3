package status

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// TestEnded: how jobs have ended is what their nodes tell, or else what the last look has shown.
func TestEnded(t *testing.T) {
	killed := links.Proc{Rank: 1, State: links.ProcEnded, Ended: "was killed by SIGABRT"}
	left := links.Proc{Rank: 1, State: links.ProcEnded, Ended: "exited with status 0"}
	for name, c := range map[string]struct {
		last   *links.Job
		told   *links.Ending
		want   string
		status int
	}{
		"told, in order": {job(left), &links.Ending{Site: "alpha"}, "job heat has ended in order\n", statusOK},
		"told, a crash":  {job(counted(0, 0, 0)), &links.Ending{Site: "alpha", Failure: "rank 1 was killed"}, "job heat has failed: rank 1 was killed\n", statusFailed},
		"only seen":      {job(counted(0, 0, 0), killed), nil, "job heat has failed: rank 1 was killed by SIGABRT\n", statusFailed},
		"not known":      {job(left), nil, "job heat is gone; how it has ended is not known here: its launcher's output and exit status say it\n", statusOK},
	} {
		f := newFollower(func(ctx context.Context, id string) *links.Ending {
			if c.told == nil || id != "a1b2" {
				<-ctx.Done()
				return nil
			}
			return c.told
		})
		if e := f.update([]Job{{Job: *c.last}}); e != nil {
			t.Errorf("%s: %+v while it runs", name, e)
		}
		r := &Report{Jobs: []Job{}, Ended: f.update(nil)}
		f.close()
		var b strings.Builder
		write(&b, r)
		if b.String() != c.want || r.status() != c.status {
			t.Errorf("%s: %q, status %d; want %q, status %d", name, &b, r.status(), c.want, c.status)
		}
		s := newScreen(nil, time.Second)
		s.Update(look{r, time.Now()})
		if text := s.summary(0); !strings.HasSuffix(text, "  "+strings.TrimSpace(c.want)+", no job any more") {
			t.Errorf("%s: top says %q", name, text)
		}
		b.Reset()
		if err := (&options{json: true}).showEnd(r, &b); err != nil || !json.Valid([]byte(b.String())) || !strings.Contains(b.String(), `"ended":[{"name":"heat","id":"a1b2"`) {
			t.Errorf("%s: %v, %s", name, err, &b)
		}
	}
}

// TestEndedOfSeveral: a job that has its ID now has not ended, and one of two that has ended is
// told beside the other one.
func TestEndedOfSeveral(t *testing.T) {
	f := newFollower(func(context.Context, string) *links.Ending { return &links.Ending{} })
	defer f.close()
	starts, runs, other := job(), job(), job()
	starts.ID, other.Name, other.ID = "", "rain", "bbbb"
	f.update([]Job{{Job: *starts}, {Job: *other}})
	if e := f.update([]Job{{Job: *runs}, {Job: *other}}); e != nil {
		t.Errorf("%+v, though it has only got its ID", e)
	}
	e := f.update([]Job{{Job: *runs}})
	if len(e) != 1 || e[0].Name != "rain" || !e[0].Known {
		t.Errorf("%+v", e)
	}
	var b strings.Builder
	write(&b, &Report{Jobs: []Job{{Job: *runs}}, Ended: e})
	if !strings.HasPrefix(b.String(), "job heat") || !strings.HasSuffix(b.String(), "\n\njob rain has ended in order\n") {
		t.Errorf("got\n%s", &b)
	}
}
