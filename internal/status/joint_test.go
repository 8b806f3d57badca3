package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
)

func ofWorld(world string, peer int) links.Partner {
	return links.Partner{What: "recv", OtherWorld: true, World: world, Peer: peer, Tag: 7}
}

// worldJob is a job that is known as a world.
func worldJob(world string, procs ...links.Proc) Job {
	j := job(procs...)
	j.Name, j.ID, j.World = "job "+world, "id "+world, world
	return Job{Job: *j}
}

// judged has the jobs looked at as AskNodes does.
func judged(least time.Duration, jobs ...Job) []Job {
	for i := range jobs {
		findHolders(&jobs[i].Job)
		jobs[i].Deadlock, jobs[i].UnderWay = verdict(&jobs[i].Job)
	}
	for i := range jobs {
		jobs[i].Elsewhere = findElsewhere(&jobs[i].Job, nil)
	}
	findJoint(jobs, least)
	return jobs
}

// TestDeadlockOverWorlds: jobs all of whose procs wait for each other are a deadlock, with the
// cycle.
func TestDeadlockOverWorlds(t *testing.T) {
	long := 3 * time.Second
	jobs := judged(time.Second,
		worldJob("a", waits(0, "mpi.Recv", 2*long, ofWorld("b", 1)), waits(1, "mpi.Barrier", long, from(0))),
		worldJob("b", waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", 2*long, ofWorld("c", 0))),
		worldJob("c", waits(0, "mpi.Recv", 2*long, ofWorld("a", 0))),
	)
	for i := range jobs {
		d := jobs[i].Deadlock
		if d == nil || jobs[i].Elsewhere != nil || d.For != long || !slices.Equal(d.Jobs, []string{"job a", "job b", "job c"}) {
			t.Fatalf("%d: %+v", i, d)
		}
		if got, want := d.AcrossText(" > "), "rank 0 of job a > rank 1 of job b > rank 0 of job c > rank 0 of job a"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var b strings.Builder
	write(&b, &Report{Jobs: jobs[:1]})
	for _, want := range []string{
		"\n  probable deadlock over 3 worlds: all procs of job a and job b and job c wait for others, for 3.0 s\n",
		"\n    rank 0 of job a --> rank 1 of job b --> rank 0 of job c --> rank 0 of job a\n", "what is under way between the worlds is not known",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	s := newScreen(nil, time.Second)
	s.Update(look{&Report{Jobs: jobs[:1]}, time.Now()})
	if text := s.summary(0); !strings.Contains(text, "PROBABLE DEADLOCK for 3.0 s of jobs job a and job b and job c") {
		t.Error(text)
	}
	alike := judged(time.Second, worldJob("a", waits(0, "mpi.Recv", long, ofWorld("b", 0))), worldJob("b", waits(0, "mpi.Recv", long, ofWorld("a", 0))))
	alike[0].Name, alike[1].Name = "heat", "heat"
	d := alike[0].Deadlock
	for i := range d.WaitingProcs {
		d.WaitingProcs[i].Job = "heat"
	}
	if got, want := d.AcrossText(" > "), "rank 0 of heat (id a) > rank 0 of heat (id b) > rank 0 of heat (id a)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNoDeadlockOverWorlds: nothing is called so unless all procs of all worlds are known to wait
// for procs of these worlds.
func TestNoDeadlockOverWorlds(t *testing.T) {
	long := 3 * time.Second
	a := func(partners ...links.Partner) Job {
		return worldJob("a", waits(0, "mpi.Recv", long, append(partners, ofWorld("b", 0))...))
	}
	b := func(call string, d time.Duration, partners ...links.Partner) Job {
		return worldJob("b", waits(0, call, d, partners...))
	}
	back := ofWorld("a", 0)
	ready := b("mpi.Recv", long, back)
	computing := b("mpi.Recv", long, back)
	computing.Sites[0].Ranks[0].Blocked.Computes = true
	left := b("mpi.Recv", long, back)
	left.Sites[0].Ranks[0].Blocked.Left = 1
	apart := b("mpi.Recv", long, back)
	apart.Sites = append(apart.Sites, links.SiteState{Site: links.Site{Name: "beta", Client: 1, First: 1, Procs: 1}, NotAsked: "x", Ranks: []links.Proc{{Rank: 1, State: links.ProcNotAsked}}})
	missing := b("mpi.Recv", long, back)
	missing.Sites[0].Procs++
	opening := b("mpi.Recv", long, back)
	opening.WorldLinks = []links.WorldLink{{World: "a", State: links.StateOpening}}
	linked := func(job Job, state links.State, world string, since time.Time) Job {
		job.WorldLinks = []links.WorldLink{{World: world, State: state, Since: since}}
		return job
	}
	whole := func(since time.Time) Job { return linked(a(), links.StateLinked, "b", since) }
	before, now := time.Now().Add(-time.Minute), time.Now()
	other := linked(ready, links.StateLinked, "a", before)
	other.WorldLinks[0].Peer = 1
	moving := b("mpi.Recv", long, back)
	bytes := uint64(9)
	moving.Channels = []links.Channel{{From: 0, To: 1, UnderWay: &bytes}}
	over := b("mpi.Recv", long, back)
	over.Sites[0].State = links.NodeEnding
	sending := back
	sending.Why = "a route"
	for name, jobs := range map[string][]Job{
		"the other world is not seen":  {a()},
		"it is another one":            {a(), worldJob("c", waits(0, "mpi.Recv", long, ofWorld("a", 0)))},
		"one waits for a third":        {a(ofWorld("c", 0)), ready},
		"its world is not known":       {a(links.Partner{What: "recv", OtherWorld: true}), ready},
		"from any":                     {a(), b("mpi.Recv", long, links.Partner{What: "recv", OtherWorld: true, World: "a", Any: true})},
		"not for long":                 {a(), b("mpi.Recv", time.Second+time.Millisecond, back)},
		"a thread computes":            {a(), computing},
		"more partners than are named": {a(), left},
		"a site is not asked":          {a(), apart},
		"a proc is missing":            {a(), missing},
		"a link is being made":         {a(), opening},
		"a link is asked for again":    {whole(before), linked(ready, links.StateOpening, "a", before)},
		"a link has just ended":        {a(), linked(ready, links.StateEnded, "a", now)},
		"a link is new":                {whole(now), linked(ready, links.StateLinked, "a", now)},
		"one end has a link":           {whole(before), ready},
		"the ends have other links":    {whole(before), other},
		"bytes are under way":          {a(), moving},
		"it ends":                      {a(), over},
		"a message is on its way":      {a(), b("mpi.Send", long, sending)},
		"it accepts others":            {a(), b("MPI_Comm_accept", long, back)},
		"all finalize":                 {a(), b("MPI_Finalize", long, back)},
		"one computes":                 {a(), worldJob("b", waits(0, "mpi.Recv", long, back), links.Proc{Rank: 1, State: links.ProcRunning})},
	} {
		for _, j := range judged(2*time.Second, jobs...) {
			if j.Deadlock != nil {
				t.Errorf("%s: %+v", name, j.Deadlock)
			}
		}
	}
	if jobs := judged(2*time.Second, whole(before), linked(ready, links.StateLinked, "a", before)); jobs[0].Deadlock == nil || jobs[1].Deadlock == nil {
		t.Error("no verdict where a link is there")
	}
	if jobs := judged(2*time.Second, a(), b("mpi.Recv", long, back)); jobs[0].Deadlock == nil || jobs[1].Deadlock == nil {
		t.Error("no verdict where all holds")
	}
}
