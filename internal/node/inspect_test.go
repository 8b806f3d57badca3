package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes/routestest"
)

// survey waits until all procs of a job have talked to each other, and asks its
// nodes as impi-node links does.
func survey(t *testing.T, all []*running, r links.Request) ([]links.FoundNode, links.Job) {
	t.Helper()
	var dirs []string
	for _, s := range all {
		<-s.n.ready
		for i := range s.n.procs.All() {
			s.out.Line(t, prefixOf(s.n, i)+"sum ")
		}
		dirs = append(dirs, s.n.dir.Path)
	}
	found := links.Survey(t.Context(), dirs, patience, r)
	jobs := links.Merge(found)
	if len(found) != len(all) || len(jobs) != 1 {
		t.Fatalf("%d nodes answered, of %d jobs: %+v", len(found), len(jobs), found)
	}
	for _, f := range found {
		if f.Err != nil {
			t.Fatal(f.Err)
		}
	}
	links.Advise(&jobs[0])
	return found, jobs[0]
}

// nothingUnderWay asks until all that procs and agents have sent has arrived, as both ends of each
// link and channel count it.
func nothingUnderWay(t *testing.T, all []*running) {
	t.Helper()
	_, j := survey(t, all, links.Request{})
	var dirs []string
	for _, s := range all {
		dirs = append(dirs, s.n.dir.Path)
	}
	for over := time.Now().Add(patience); ; j = links.Merge(links.Survey(t.Context(), dirs, patience, links.Request{}))[0] {
		known, left := 0, ""
		add := func(what string, ends ...*uint64) {
			for _, n := range ends {
				switch {
				case n == nil:
					left += fmt.Sprintf("%s: unknown\n", what)
				case *n > 0:
					left += fmt.Sprintf("%s: %d bytes\n", what, *n)
				default:
					known++
				}
			}
		}
		for _, p := range j.Pairs {
			if p.State == links.StateLinked {
				add(fmt.Sprintf("ranks %d and %d", p.A, p.B), p.AToB.UnderWay, p.BToA.UnderWay)
			}
		}
		for _, c := range j.Channels {
			add(fmt.Sprintf("host %d to %d", c.From, c.To), c.UnderWay)
		}
		if known > 0 && left == "" {
			return
		}
		if time.Now().After(over) {
			t.Fatalf("under way:\n%s", left)
		}
	}
}

// TestUnderWay: both ends of links and channels count the same bytes, whatever their data planes.
func TestUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		alpha, beta []string // data planes
		route       config.Route
	}{
		"direct links":         {nil, nil, config.Route{Prefer: []string{"tcp"}, Direct: true}},
		"by rings":             {[]string{"ring"}, []string{"ring"}, config.Route{Prefer: []string{"tcp"}, Direct: true}},
		"by different planes":  {[]string{"ring"}, []string{"stream"}, config.Route{Prefer: []string{"tcp"}, Direct: true}},
		"resumable":            {[]string{"ring"}, []string{"stream"}, config.Route{Prefer: []string{"tcp"}, Direct: true, Resume: true}},
		"channels":             {[]string{"ring"}, []string{"stream"}, config.Route{Prefer: []string{"tcp"}}},
		"channels that resume": {[]string{"ring"}, []string{"ring"}, config.Route{Prefer: []string{"tcp"}, Resume: true}},
	} {
		t.Run(name, func(t *testing.T) {
			job := testJob("linked", 1, 1)
			for i, planes := range [][]string{c.alpha, c.beta} {
				r := c.route
				r.Site, r.DataPlane = "*", planes
				job.Sites[i].Routes = []config.Route{r}
			}
			nothingUnderWay(t, start(t, job))
		})
	}
}

func prefixOf(n *node, i int) string { return fmt.Sprintf("[%d] ", n.procs.All()[i].Rank()) }

// TestLinksOfTwoSites is the whole of it: what two nodes with four procs say.
func TestLinksOfTwoSites(t *testing.T) {
	all := start(t, route(testJob("linked", 2, 2), config.Route{Prefer: []string{"unix", "tcp"}, Direct: true}))
	found, j := survey(t, all, links.Request{})
	if len(j.Pairs) != 6 || j.Unused != 0 || j.ID == "" {
		t.Fatalf("%+v", j)
	}
	for _, p := range j.Pairs {
		if p.State != links.StateLinked || p.Transport != "unix" || p.Plane != "fd" || p.PlaneReason == "" || len(p.Views) != 2 || len(advice(p)) != 0 {
			t.Errorf("ranks %d and %d: %+v", p.A, p.B, p)
		}
		if *p.AToB.Messages == 0 || *p.BToA.Messages == 0 || *p.AToB.Bytes < wire.HeaderSize || *p.BToA.Bytes < wire.HeaderSize {
			t.Errorf("ranks %d and %d: %+v %+v", p.A, p.B, p.AToB, p.BToA)
		}
		v := p.Views[0]
		if !v.Dialled {
			v = p.Views[1]
		}
		if got := routestest.Verdicts(v); !v.SameMachine || got != "unix chosen, tcp possible" {
			t.Errorf("ranks %d and %d: %s", p.A, p.B, got)
		}
	}
	for _, s := range j.Sites {
		if !s.Here || s.State != links.NodeRunning || len(s.Ranks) != 2 || len(s.Transports) != 2 || len(s.Agents) != 1 {
			t.Errorf("%+v", s)
		}
		for _, p := range s.Ranks {
			if p.Silent != "" || p.Wait.Setting != "auto" || p.Wait.Budget == 0 || p.Wait.State != "computing" {
				t.Errorf("%+v", p)
			}
		}
	}
	if len(j.Channels) != 2 || j.Channels[0].RTT == 0 || j.Channels[0].Sent == nil {
		t.Errorf("channels %+v", j.Channels)
	}
	jobs := []links.Job{j}
	links.MeasureAll(t.Context(), jobs, found, time.Minute, true)
	for _, p := range jobs[0].Pairs {
		if s := p.Speed; s == nil || s.Problem != "" || s.HalfTrip <= 0 || s.Best > s.HalfTrip || s.Rate <= 0 || s.How != links.HowProbe || s.Measure.Plane != "fd" {
			t.Errorf("ranks %d and %d: %+v", p.A, p.B, p.Speed)
		}
	}
	for _, p := range jobs[0].Pairs {
		for _, v := range p.Views {
			c := v.Candidates[1] // tcp, which nobody uses
			if v.Dialled && (c.Probe == nil || c.Probe.Problem != "" || c.Probe.HalfTrip <= 0) {
				t.Errorf("ranks %d and %d by tcp: %+v", p.A, p.B, c.Probe)
			}
		}
	}
	if f := slices.IndexFunc(j.Pairs, func(p links.Pair) bool { return p.Resumes != 0 }); f >= 0 {
		t.Errorf("%+v", j.Pairs[f])
	}
}

// advice is what would make a pair faster, but for less work on this machine.
func advice(p links.Pair) []string {
	return slices.DeleteFunc(slices.Clone(p.Faster), func(s string) bool { return strings.HasPrefix(s, "a core for") })
}

func TestLinksByTCPCouldStayOnTheMachine(t *testing.T) {
	all := start(t, route(testJob("linked", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true}))
	_, j := survey(t, all, links.Request{})
	p := j.Pairs[0]
	if p.Transport != "tcp" || p.Speed == nil || p.Speed.How != links.HowKernel || p.Speed.HalfTrip == 0 {
		t.Errorf("%+v", p)
	}
	if got := routestest.Verdicts(p.Views[0]); got != "tcp chosen, unix excluded by prefer" {
		t.Error(got)
	}
	if want := `both are on one machine: "unix" in prefer of route "*" of site alpha`; !slices.Contains(p.Faster, want) {
		t.Errorf("%q", p.Faster)
	}
}

func TestLinksThroughTheAgents(t *testing.T) {
	all := start(t, route(testJob("linked", 1, 1), config.Route{Prefer: []string{"tcp", "unix"}}))
	_, j := survey(t, all, links.Request{})
	p := j.Pairs[0]
	if p.State != links.StateAgents || p.Transport != "" || p.Why != "the route has direct = false" || *p.AToB.Messages == 0 || p.AToB.Bytes != nil {
		t.Errorf("%+v", p)
	}
	if got := routestest.Verdicts(p.Views[0]); got != "tcp excluded by direct, unix excluded by direct" {
		t.Error(got)
	}
	if a := advice(p); len(a) != 2 || !strings.HasPrefix(a[0], `direct = true in route "*"`) {
		t.Errorf("%q", a)
	}
	if p.Speed == nil || p.Speed.How != links.HowChannel || p.Speed.HalfTrip <= 0 {
		t.Errorf("speed %+v", p.Speed)
	}
	if c := j.Channels[0]; *c.Sent < wire.HeaderSize || *c.Received < wire.HeaderSize ||
		c.Transport != "tcp" || c.Plane != "fd" || c.PlaneReason == "" || c.State != links.StateLinked || c.Resumable {
		t.Errorf("%+v", c)
	}
	if a := j.Sites[0].Ranks[0].Agent; *a.Sent < wire.HeaderSize || *a.Received < wire.HeaderSize {
		t.Errorf("%+v", a)
	}
}

// TestUnusedPairs: nothing was sent, and nothing is told of it unless asked.
func TestUnusedPairs(t *testing.T) {
	all := start(t, testJob("block", 2))
	<-all[0].n.ready
	for _, c := range []struct {
		r             links.Request
		listed, count int
	}{{links.Request{}, 0, 1}, {links.Request{All: true}, 1, 0}, {links.Request{AllUpTo: 1}, 0, 1}, {links.Request{AllUpTo: 2}, 1, 0}} {
		found := links.Survey(t.Context(), []string{all[0].n.dir.Path}, patience, c.r)
		j := links.Merge(found)[0]
		if len(j.Pairs) != c.listed || j.Unused != c.count {
			t.Errorf("%+v: %d listed, %d not", c.r, len(j.Pairs), j.Unused)
			continue
		}
		if c.listed > 0 && (j.Pairs[0].State != links.StateUnused || routestest.Verdicts(j.Pairs[0].Views[0]) != "unix possible, tcp possible") {
			t.Errorf("%+v", j.Pairs[0])
		}
	}
}

// TestStoppedProc: a proc that cannot answer keeps nobody, is named, and answers
// again when it runs again.
func TestStoppedProc(t *testing.T) {
	all := start(t, route(testJob("linked", 2), config.Route{Prefer: []string{"tcp"}, Direct: true}))
	survey(t, all, links.Request{})
	n := all[0].n
	pid := n.procs.All()[1].PID()
	stop(t, pid)
	var since [2]time.Time
	for i := range 2 { // the second asks nobody anything: it waits for the same answer
		var d *links.Node
		for range 60 { // the one that runs may need more than a second on a busy machine
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			d = n.control.Describe(ctx, links.Request{})
			cancel()
			if d.Procs[0].Silent == "" {
				break
			}
		}
		if d.Procs[0].Silent != "" || !strings.Contains(d.Procs[1].Silent, "is stopped") {
			t.Fatalf("%+v", d.Procs)
		}
		if since[i] = d.Procs[1].Since; since[i].IsZero() || since[i] != since[0] || !d.Procs[0].Since.IsZero() {
			t.Errorf("%d: it is silent since %v, and the one that answers since %v", i, since, d.Procs[0].Since)
		}
		if v := d.Views[1]; v.Local != 1 || v.State != links.StateLinked || v.Transport != "tcp" || v.Traffic != nil {
			t.Errorf("what the node knows itself: %+v", v)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if s, err := n.procs.All()[1].Stats(t.Context(), true); err != nil || len(s.Links) == 0 {
		t.Errorf("%+v %v", s, err)
	}
}

// stop stops a process and waits until it is.
func stop(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, state, _ := strings.Cut(string(b), ") "); strings.HasPrefix(state, "T") {
			return
		}
		runtime.Gosched() // the kernel is about to
	}
}

func TestNodeThatStartsSaysSo(t *testing.T) {
	all := start(t, testJob("idle", 1))
	<-all[0].n.listening
	found := links.Survey(t.Context(), []string{all[0].n.dir.Path}, patience, links.Request{})
	if len(found) != 1 || found[0].Err != nil || found[0].Node.State != links.NodeStarting || found[0].About.Site != "alpha" {
		t.Fatalf("%+v", found)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := links.Ask(ctx, filepath.Join(all[0].n.dir.Path, links.SocketName), links.Request{Op: links.OpProbe}); err == nil || !strings.Contains(err.Error(), "does not run yet") {
		t.Errorf("%v", err)
	}
}

// TestProbesThatCannotBe: what is asked for is checked, and a refusal says why.
func TestProbesThatCannotBe(t *testing.T) {
	all := start(t, route(testJob("linked", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true}))
	survey(t, all, links.Request{})
	path := filepath.Join(all[0].n.dir.Path, links.SocketName)
	for want, r := range map[string]links.Request{
		"no pair of this site":                 {Op: links.OpProbe, Local: 1, Peer: 0, Transport: "tcp"},
		"ranks 0 and 2 are no pair":            {Op: links.OpProbe, Local: 0, Peer: 2, Transport: "tcp"},
		"ranks 0 and -1 are no pair":           {Op: links.OpProbe, Local: 0, Peer: -1, Transport: "tcp"},
		"routes do not allow unix to rank 1":   {Op: links.OpProbe, Local: 0, Peer: 1, Transport: "unix"},
		`this node does not know "everything"`: {Op: "everything"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := links.Ask(ctx, path, r)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}

// TestProbeOfHungPeer: who accepts and says nothing is given up at the deadline.
func TestProbeOfHungPeer(t *testing.T) {
	all := start(t, route(testJob("linked", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true}))
	survey(t, all, links.Request{})
	n := all[0].n
	if !all[1].n.prober.Enter() {
		t.Fatal("it is busy before anybody came")
	}
	for all[1].n.prober.Enter() { // as if others were measured there
	}
	x := links.Request{Local: 0, Peer: 1, Transport: "tcp"}
	if _, err := n.prober.Measure(t.Context(), x); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("%v", err)
	}
	mute := muteListener(t)
	card := n.routes.Cards.At(1)
	for i := range card.Addresses {
		if card.Addresses[i].Transport == "tcp" {
			card.Addresses[i].Address = mute
		}
	}
	routestest.SetCard(n.routes, 1, card)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := n.prober.Measure(ctx, x); err == nil || ctx.Err() == nil {
		t.Errorf("%v", err)
	}
}

// TestNothingIsLeft: neither socket nor directory survives the node.
func TestNothingIsLeft(t *testing.T) {
	all := start(t, testJob("ring", 2))
	<-all[0].n.listening
	dir := all[0].n.dir.Path
	wantNone(t, all)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// TestStatusWhileStarting: a node whose site is the only one that is up says where its procs are,
// and for which site it waits.
func TestStatusWhileStarting(t *testing.T) {
	job := testJob("linked", 2, 1)
	job.Sites[0].Server.Embedded = true
	r := startSites(t, job, job.Sites[:1])[0]
	<-r.n.listening
	for {
		d := r.n.control.Describe(context.Background(), links.Request{})
		if d.Waits == "site beta (client 1)" {
			if len(d.Procs) != 2 || d.Procs[0].Address != "127.0.0.2" || d.Procs[1].State != links.ProcInit {
				t.Errorf("%+v", d.Procs)
			}
			return
		}
		select {
		case <-r.done:
			t.Fatal(r.failure)
		default:
			runtime.Gosched()
		}
	}
}
