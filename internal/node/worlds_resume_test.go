package node

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/wireup"
)

func init() {
	programs["accepts much"] = func() {
		w := initialize()
		port := opened(w)
		inter, err := w.Accept(port, nil, 0)
		check(err)
		crosses(inter, false)
		if w.Rank() == 0 {
			check(mpi.UnpublishName(os.Getenv(serviceVariable), nil, port))
		}
		finalize()
	}
	programs["connects much"] = func() {
		w := initialize()
		inter, err := w.Connect(found(w), nil, 0)
		check(err)
		crosses(inter, true)
		finalize()
	}
	programs["spawns much"] = func() {
		w := initialize()
		self, err := os.Executable()
		check(err)
		info := mpi.NewInfo()
		check(info.Set("env", modeVariable+"=child of much"))
		inter, _, err := w.Spawn(mpi.Command{Path: self, Procs: w.Size(), Info: info}, 0)
		check(err)
		crosses(inter, false)
		finalize()
	}
	programs["child of much"] = func() {
		initialize()
		crosses(mpi.Parent(), true)
		finalize()
	}
}

// crosses exchanges much between the procs of two worlds of equal size, and has them part.
func crosses(inter *mpi.Comm, second bool) {
	all, err := inter.Merge(second)
	check(err)
	turn := 2 * (all.Rank() % (all.Size() / 2))
	if second {
		turn++
	}
	w, err := all.Split(0, turn) // neighbours are of different worlds
	check(err)
	exchange(w, 2<<20)
	chat(w, chatRounds)
	for _, c := range []*mpi.Comm{w, all, inter} {
		check(c.Disconnect())
	}
	fmt.Println("crossed")
}

// cutByChaos has the links of a job be cut, again and again, and resumed.
func cutByChaos(j *config.Job) *config.Job {
	withTransport(j, "chaos", func(string) map[string]any { return map[string]any{"cut_bytes": 100e3} })
	return route(j, config.Route{Prefer: []string{"chaos"}, Direct: true, Resume: true})
}

// wantResumed wants links between worlds to have been cut and resumed that often, in all.
func wantResumed(t *testing.T, least int, all ...*running) {
	t.Helper()
	lost, resumed := 0, 0
	for _, r := range all {
		log := r.err.String()
		lost += strings.Count(log, "a link to another world is lost and dialled again")
		resumed += strings.Count(log, "a link to another world is resumed: ")
	}
	if lost < least || resumed < least {
		t.Errorf("links between worlds were lost %d times, and resumed %d times: nothing was shown", lost, resumed)
	}
}

// Of two jobs that meet at a port all links are cut while data are under way: all of it arrives.
func TestLinksBetweenJobsAreCut(t *testing.T) {
	_, shared := sharedNames(t)
	job := func(mode string) *config.Job {
		j := with(testJob(mode, 2), serviceVariable, "much")
		shared(j)
		return cutByChaos(j)
	}
	a, b := start(t, job("accepts much")), start(t, job("connects much"))
	wantNone(t, a)
	wantNone(t, b)
	for _, r := range append(a, b...) {
		wantLines(t, r.out, map[string]int{`\[\d\] crossed`: 2})
		if ports, requests, pairs := r.n.meetings.Counts(); ports+requests+pairs > 0 {
			t.Errorf("the node has %d ports, %d requests, %d pairs", ports, requests, pairs)
		}
	}
	wantResumed(t, 10, append(a, b...)...)
}

// The same of a job and the one that it has spawned.
func TestLinksToSpawnedProcsAreCut(t *testing.T) {
	job := cutByChaos(testJob("spawns much", 2))
	job.Sites[0].Spawn = config.Spawn{Slots: 2}
	all := start(t, job)
	wantNone(t, all)
	if n := strings.Count(all[0].out.String(), "crossed"); n != 4 {
		t.Errorf("%d procs came to the end", n)
	}
	wantResumed(t, 10, all...)
}

// A link to another world resumes if both routes say so; a node whose card does not is dialled as
// one that knows nothing of it.
func TestWhichLinksBetweenJobsResume(t *testing.T) {
	resume := func(on bool) func(*config.Job) {
		return func(j *config.Job) { route(j, config.Route{Prefer: []string{"tcp"}, Direct: true, Resume: on}) }
	}
	for _, c := range [][2]bool{{true, true}, {true, false}, {false, true}} {
		a, b := startVisitor(t, "alfa", resume(c[0])), startVisitor(t, "beta", resume(c[1]))
		a.meets(b)
		x, y := a.wants(wireup.KindLink, 0, "beta").Resumable, b.wants(wireup.KindLink, 0, "alfa").Resumable
		if both := c[0] && c[1]; (x != nil) != both || (y != nil) != both {
			t.Fatalf("%v: %+v, and at the other end %+v", c, x, y)
		}
		if x != nil && (!x.Dialler || y.Dialler || string(x.Session) != string(y.Session) || x.Window == 0 || x.Limit == 0) {
			t.Errorf("%+v, and at the other end %+v", x, y)
		}
	}
}
