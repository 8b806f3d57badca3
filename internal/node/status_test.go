package node

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
)

// blockedJob asks a node of a job again and again, until all four procs are blocked, and by their
// peers: what is sent before the packet switch has a route to the peer waits for the route first.
func blockedJob(t *testing.T, dir string) links.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		found := links.Survey(t.Context(), []string{dir}, patience, links.Request{Sites: true, Calls: true})
		if len(found) > 0 && found[0].Err != nil {
			t.Fatal(found[0].Err)
		}
		jobs := links.Merge(found)
		if len(jobs) != 1 {
			continue
		}
		n := 0
		for _, s := range jobs[0].Sites {
			for _, p := range s.Ranks {
				if b := p.Blocked; b != nil && len(b.Calls) == 1 && len(b.Partners) > 0 && b.Partners[0].Why != "a route" {
					n++
				}
			}
		}
		if n == 4 {
			return jobs[0]
		}
	}
	t.Fatal("not all four procs say in which call they are blocked")
	return links.Job{}
}

// blockedTwice asks twice, until no step of a call has ended between the two: a barrier's first
// send may still end when all procs are blocked already.
func blockedTwice(t *testing.T, dir string) (j, again links.Job) {
	t.Helper()
	over := time.Now().Add(patience)
	for again = blockedJob(t, dir); time.Now().Before(over); {
		j, again = again, blockedJob(t, dir)
		longer := 0
		for i, s := range j.Sites {
			for k, p := range s.Ranks {
				if again.Sites[i].Ranks[k].Blocked.Time > p.Blocked.Time {
					longer++
				}
			}
		}
		if longer == 4 {
			return j, again
		}
	}
	t.Fatal("a call seems to begin again and again")
	return j, again
}

// blockedIn is a call, and what it wants.
type blockedIn struct {
	call    string
	partner links.Partner
}

// wantBlocked is what the procs of the program do, by rank.
var wantBlocked = []blockedIn{
	{"mpi.Recv", links.Partner{What: "recv", Peer: 2, Tag: 5, Comm: "MPI_COMM_WORLD"}},
	{"mpi.Recv", links.Partner{What: "recv", Any: true, Tag: 9, Comm: "MPI_COMM_WORLD"}},
	{"mpi.Ssend", links.Partner{What: "send", Peer: 0, Tag: 6, Comm: "MPI_COMM_WORLD", Why: "SYNCACK"}},
	{"mpi.Barrier", links.Partner{What: "collective", Comm: "MPI_COMM_WORLD"}},
}

// TestStatusOfOtherSites: a node tells of all sites of its job in which calls their procs are
// blocked, and since when.
func TestStatusOfOtherSites(t *testing.T) {
	all := start(t, route(testJob("blocked", 2, 2), config.Route{Prefer: []string{"unix", "tcp"}, Direct: true}))
	for _, s := range all {
		<-s.n.ready
	}
	for _, asked := range all {
		j, again := blockedTwice(t, asked.n.dir.Path)
		for i, s := range j.Sites {
			if s.Here != (s.Client == asked.n.site.Routes.Site.Client) || s.State != links.NodeRunning || s.Problem != "" || len(s.Ranks) != 2 {
				t.Errorf("%+v", s)
			}
			for k, p := range s.Ranks {
				b, later := p.Blocked, again.Sites[i].Ranks[k].Blocked
				if p.State != links.ProcRunning || later.Time <= b.Time || later.Time-b.Time > time.Hour {
					t.Errorf("%+v, later %+v", p, later)
				}
				x := b.Partners[0]
				if x.What == "collective" {
					x.Peer = 0 // it depends on the algorithm
				}
				if got, w := (blockedIn{b.Calls[0].Name, x}), wantBlocked[p.Rank]; !reflect.DeepEqual(got, w) || !strings.Contains(b.Calls[0].At, "programs_test.go:") {
					t.Errorf("rank %d: %+v, want %+v", p.Rank, b, w)
				}
			}
		}
	}
}

// TestStatusOverChannels: a site that procs reach through the agents only is asked over the channel
// between those.
func TestStatusOverChannels(t *testing.T) {
	for name, change := range map[string]func(*config.Route){
		"as it is": func(*config.Route) {}, "resumable": func(r *config.Route) { r.Resume = true },
	} {
		r := config.Route{Prefer: []string{"tcp"}, Direct: false}
		change(&r)
		all := start(t, route(testJob("blocked", 2, 2), r))
		for _, s := range all {
			<-s.n.ready
		}
		for _, asked := range all {
			j, _ := blockedTwice(t, asked.n.dir.Path)
			for _, s := range j.Sites {
				if s.Here != (s.Client == asked.n.site.Routes.Site.Client) || s.State != links.NodeRunning || !s.Answered() {
					t.Errorf("%s: %+v", name, s)
				}
			}
			still := func() bool {
				j := blockedJob(t, asked.n.dir.Path)
				moving := func(c links.Channel) bool { return c.UnderWay == nil || *c.UnderWay != 0 }
				return len(j.Channels) == 2 && !slices.ContainsFunc(j.Channels, moving)
			}
			for over := time.Now().Add(patience); !still() && time.Now().Before(over); {
			} // until the first packets of the barrier have arrived
			for range 20 {
				if !still() {
					t.Fatalf("%s: what nodes ask each other is taken for packets", name)
				}
			}
		}
	}
}

// manyVersions are as many as leave no room for wire.AskVersion.
func manyVersions() (list []config.Version) {
	list = []config.Version{{}, config.OwnVersion}
	for i := range uint32(startup.MaxVersions - 2 - 3) {
		list = append(list, config.Version{Major: 1, Minor: i})
	}
	return list
}

// TestStatusOfSitesApart: a site of a release that cannot be asked over channels, and that no link
// leads to, is shown as not asked, with the reasons, and is not taken for silent. It is not sent
// what it does not know, which would end the job.
func TestStatusOfSitesApart(t *testing.T) {
	job := route(testJob("blocked", 2, 2), config.Route{Prefer: []string{"tcp"}, Direct: false})
	job.Sites[1].Labels.Versions = manyVersions()
	all := start(t, job)
	for _, s := range all {
		<-s.n.ready
	}
	if !all[0].n.job.Clients[0].Lists(wire.AskVersion) || all[0].n.job.Clients[1].Lists(wire.AskVersion) {
		t.Fatalf("the sites list %v and %v", all[0].n.job.Clients[0].Versions, all[0].n.job.Clients[1].Versions)
	}
	for _, asked := range all {
		j := links.Merge(links.Survey(t.Context(), []string{asked.n.dir.Path}, patience, links.Request{Sites: true}))[0]
		const want = "not asked: no transport leads there, or the route has direct = false, and its release of impi cannot be asked over the agents' channel: run the command there too"
		for _, s := range j.Sites {
			if s.Here {
				continue
			}
			if s.Problem != "" || !s.Since.IsZero() || s.NotAsked != want || len(s.Ranks) != 2 {
				t.Errorf("%+v", s)
			}
			for _, p := range s.Ranks {
				if p.State != links.ProcNotAsked || p.Silent != s.NotAsked {
					t.Errorf("%+v", p)
				}
			}
		}
		if len(j.Sites) != 2 {
			t.Errorf("%+v", j.Sites)
		}
	}
}

// TestLinksThatLook: links by which nodes ask each other are not counted as those of the job.
func TestLinksThatLook(t *testing.T) {
	all := start(t, route(testJob("blocked", 2, 2), config.Route{Prefer: []string{"unix", "tcp"}, Direct: true}))
	for _, s := range all {
		<-s.n.ready
	}
	made := func() (n int) {
		for _, s := range all {
			for _, x := range s.n.routes.Transports {
				n += x.Plugin.Status().Links
			}
		}
		return n
	}
	blockedTwice(t, all[0].n.dir.Path) // all links of the procs are there
	before := made()
	const questions = 25 // of each node, more than links of the procs that may be counted late
	for range questions {
		for _, s := range all {
			if j := blockedJob(t, s.n.dir.Path); len(j.Sites) != 2 {
				t.Errorf("%+v", j)
			}
		}
	}
	if after := made(); after-before >= questions || before == 0 {
		t.Errorf("%d links, and %d after questions", before, after)
	}
}

// TestThreadsThatCompute: procs that are blocked in MPI while other threads of theirs compute are
// no deadlock, and are one when these are done.
func TestThreadsThatCompute(t *testing.T) {
	all := start(t, testJob("busy", 2))
	<-all[0].n.ready
	await := func(what string, seen func(j *status.Job, computes []bool) bool) {
		t.Helper()
		for over := time.Now().Add(patience); time.Now().Before(over); {
			jobs := status.AskNodes(t.Context(), []string{all[0].n.dir.Path}, patience, links.Request{Calls: true})
			if len(jobs) != 1 || len(jobs[0].Sites[0].Ranks) != 2 {
				continue
			}
			var computes []bool
			for _, p := range jobs[0].Sites[0].Ranks {
				computes = append(computes, p.Blocked != nil && p.Blocked.Computes)
			}
			if seen(&jobs[0], computes) {
				return
			}
		}
		t.Fatal(what)
	}
	await("no thread computes", func(j *status.Job, computes []bool) bool {
		if computes[1] && j.Deadlock != nil {
			t.Errorf("%+v, though a thread computes", j.Deadlock)
		}
		return computes[1] && !computes[0]
	})
	if err := syscall.Kill(all[0].n.procs.All()[1].PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	await("no deadlock", func(j *status.Job, computes []bool) bool {
		return j.Deadlock != nil && slices.Equal(computes, []bool{false, false})
	})
}
