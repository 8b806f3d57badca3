package status

import (
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// TestElsewhere: where all procs wait and some of them for other worlds, it is said what a deadlock
// depends on.
func TestElsewhere(t *testing.T) {
	long := 3 * time.Second
	away := links.Partner{What: "recv", OtherWorld: true}
	busy := links.Proc{Rank: 1, State: links.ProcRunning}
	linked := links.WorldLink{Local: 0, World: "0123456789ab", State: links.StateLinked}
	for name, c := range map[string]struct {
		job   *links.Job
		links []links.WorldLink
		want  string
	}{
		"parent and children": {job(waits(0, "MPI_Recv", long, away), waits(1, "MPI_Barrier", long, from(0))), []links.WorldLink{linked}, "world 01234567, job child, for which rank 0 waits"},
		"accepts":             {job(waits(0, "MPI_Comm_accept", long), waits(1, "MPI_Recv", long, from(0))), nil, "other worlds, for which rank 0 waits"},
		"both":                {job(waits(0, "MPI_Recv", long, away), waits(1, "MPI_Recv", long, away)), []links.WorldLink{linked, {Local: 1, World: "ff", State: links.StateLinked}, {Local: 1, World: "ee", State: links.StateEnded}}, "worlds 01234567, job child and ff, for which ranks 0, 1 wait"},
		"of others":           {job(waits(0, "MPI_Recv", long, from(1)), waits(1, "MPI_Recv", long, away)), []links.WorldLink{linked}, "other worlds, for which rank 1 waits"},
		"one computes":        {job(waits(0, "MPI_Recv", long, away), busy), nil, ""},
		"not for long":        {job(waits(0, "MPI_Recv", time.Millisecond, away)), nil, ""},
		"no other world":      {job(waits(0, "MPI_Recv", long, from(1)), waits(1, "MPI_Recv", long, from(0))), nil, ""},
		"one has died":        {job(waits(0, "MPI_Recv", long, away), links.Proc{Rank: 1, State: links.ProcEnded, Ended: "was killed by SIGABRT"}), nil, ""},
	} {
		c.job.WorldLinks = c.links
		got := ""
		if e := findElsewhere(c.job, map[string]string{"0123456789ab": "child"}); e != nil {
			got = e.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	apart := job(waits(0, "MPI_Recv", long, away))
	apart.Sites = append(apart.Sites, links.SiteState{Site: links.Site{Name: "beta", First: 1, Procs: 1}})
	if e := findElsewhere(apart, nil); e != nil {
		t.Errorf("%v, though a site was not asked", e)
	}
	var b strings.Builder
	write(&b, &Report{Jobs: []Job{{Job: *job(), Elsewhere: &WaitsForOtherJobs{Ranks: []int{0}}}}})
	if want := "\n  all procs wait for others; whether that is a deadlock depends on other worlds, for which rank 0 waits\n"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, &b)
	}
	s := newScreen(nil, time.Second)
	s.Update(look{&Report{Jobs: []Job{{Job: *job(), Elsewhere: &WaitsForOtherJobs{Ranks: []int{0}}}}}, time.Now()})
	if text := s.summary(0); !strings.Contains(text, "depends on other worlds, for which rank 0 waits") {
		t.Error(text)
	}
}
