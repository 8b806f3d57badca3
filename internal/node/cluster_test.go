package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/site/client"
)

func init() {
	programs["says"] = func() { // who it is, once everybody has talked to everybody
		w := initialize()
		everybody(w)
		fmt.Println("here")
		finalize()
	}
	programs["cat"] = func() {
		initialize()
		_, _ = io.Copy(os.Stdout, os.Stdin)
		finalize()
	}
}

// clusterJob is a job of sites with several hosts each, of procs procs each.
func clusterJob(mode string, procs int, hosts ...int) *config.Job {
	job := testJob(mode, make([]int, len(hosts))...)
	for i := range job.Sites {
		job.Sites[i].Hosts = nil
		for h := range hosts[i] {
			job.Sites[i].Hosts = append(job.Sites[i].Hosts, config.Host{Address: netip.AddrFrom4([4]byte{127, 0, byte(1 + i), byte(1 + h)}), Procs: procs})
		}
	}
	return job
}

// startApart runs every host of every site by a node of its own: by site, the head first.
func startApart(t testing.TB, job *config.Job, change ...func(*Options)) (all [][]*running) {
	t.Helper()
	serveApart(t, job)
	for _, site := range job.Sites {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var hosts []*running
		for self := range site.Hosts {
			hosts = append(hosts, startSites(t, job, []config.Site{site}, append(change, func(o *Options) {
				o.Cluster = &client.ClusterConfig{Hosts: site.Hosts, Self: self, Secret: []byte("secret"), Head: ln.Addr().String()}
				if self == 0 {
					o.Cluster.Listener = ln
				}
			})...)...)
		}
		all = append(all, hosts)
	}
	return all
}

// flat are all nodes of a job.
func flat(all [][]*running) (list []*running) {
	for _, hosts := range all {
		list = append(list, hosts...)
	}
	return list
}

// TestSitesOfManyHosts: procs of all hosts are in one world, by direct links and by agents, in
// the order of the hosts, and what they write comes out at the head.
func TestSitesOfManyHosts(t *testing.T) {
	for name, r := range map[string]config.Route{"direct": {Prefer: []string{"unix", "tcp"}, Direct: true}, "agents": {Prefer: []string{"tcp"}}} {
		t.Run(name, func(t *testing.T) {
			all := startApart(t, route(clusterJob("says", 2, 3, 2), r))
			wantNone(t, flat(all))
			for site, ranks := range [][]int{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9}} {
				out := all[site][0].out.String()
				for _, rank := range ranks {
					if !strings.Contains(out, fmt.Sprintf("[%d] here\n", rank)) {
						t.Errorf("the head of site %d has nothing of rank %d:\n%s", site, rank, out)
					}
				}
				for _, h := range all[site][1:] {
					if s := h.out.String(); s != "" {
						t.Errorf("a host that is not the head writes by itself: %s", s)
					}
				}
			}
		})
	}
}

// TestHostsFail: a proc that is killed on any host is what all nodes of the job name.
func TestHostsFail(t *testing.T) {
	all := startApart(t, clusterJob("linked", 2, 3, 2))
	for _, r := range flat(all) {
		select {
		case <-r.n.ready:
		case <-r.done:
			t.Fatal(r.failure)
		}
	}
	if err := syscall.Kill(all[0][2].n.procs.All()[1].PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i, f := range end(flat(all)) {
		if f == nil || !strings.Contains(f.Text, "rank 5 on site alpha was killed by SIGKILL") {
			t.Errorf("node %d: %v", i, f)
		}
	}
}

// TestHostThatNeverComes is named, with its address, when the time is over.
func TestHostThatNeverComes(t *testing.T) {
	var failures []*ending.Failure
	endsInTime(t, 3*time.Second, func(limit time.Duration) *ending.Failure {
		job := clusterJob("ring", 1, 3)
		job.Limits.Start = limit
		job.Sites[0].Server.Embedded = true
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var some []*running
		for _, self := range []int{0, 1} {
			some = append(some, startSites(t, job, job.Sites, func(o *Options) {
				o.Cluster = &client.ClusterConfig{Hosts: job.Sites[0].Hosts, Self: self, Secret: []byte("secret"), Head: ln.Addr().String()}
				if self == 0 {
					o.Cluster.Listener = ln
				} else {
					o.Site.Server.Embedded = false
				}
			})...)
		}
		failures = end(some)
		return failures[0]
	})
	for i, f := range failures {
		if f == nil || f.Status != ending.StatusTimeout || !strings.Contains(f.Text, "missing: 127.0.1.3") {
			t.Errorf("node %d: %v", i, f)
		}
	}
}

// TestInputOfAnotherHost: the proc that reads standard input is not at the head.
func TestInputOfAnotherHost(t *testing.T) {
	job := clusterJob("cat", 1, 2)
	job.Sites[0].Server.Embedded = true
	job.Sites[0].Program.Stdin = 1
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.WriteString("from the head\n")
		_ = w.Close()
	}()
	all := startApart(t, job, func(o *Options) { o.Stdin = r })
	wantNone(t, flat(all))
	if out := all[0][0].out.String(); !strings.Contains(out, "[1] from the head") {
		t.Errorf("the output is %q", out)
	}
	_ = r.Close()
}

// awaitSums waits until all procs have talked to each other, which the heads' output says.
func awaitSums(t *testing.T, all [][]*running) {
	t.Helper()
	for _, hosts := range all {
		for _, n := range hosts {
			<-n.n.ready
			for i := range n.n.procs.All() {
				hosts[0].out.Line(t, prefixOf(n.n, i)+"sum ")
			}
		}
	}
}

// ofSite asks one node alone, as impi-node links does on a machine.
func ofSite(t *testing.T, n *running, r links.Request) ([]links.FoundNode, links.Job) {
	t.Helper()
	found := links.Survey(t.Context(), []string{n.n.dir.Path}, patience, r)
	jobs := links.Merge(found)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs: %+v", len(jobs), found)
	}
	return found, jobs[0]
}

// TestLinksOfAllHosts: the node of any host tells of its whole site, has pairs measured by the
// host of the first rank, and plugins replaced on the host that is meant.
func TestLinksOfAllHosts(t *testing.T) {
	all := startApart(t, route(clusterJob("linked", 2, 3, 1), config.Route{Prefer: []string{"tcp"}, Direct: true}))
	awaitSums(t, all)
	for self, n := range all[0] {
		found, j := ofSite(t, n, links.Request{All: true})
		s := j.Sites[0]
		if len(found) != 3 || len(j.Pairs) != 27 || j.ID == "" || !s.Here || s.Problem != "" || s.State != links.NodeRunning || j.Sites[1].Here {
			t.Fatalf("host %d: %d nodes, %d pairs of 27, %+v", self, len(found), len(j.Pairs), j.Sites)
		}
		if s.PID != os.Getpid() || len(s.Agents) != 3 || len(s.Ranks) != 6 || len(s.Transports) != 3*len(n.n.routes.Transports) {
			t.Errorf("host %d: %+v", self, s)
		}
		for i, x := range s.Nodes {
			if x.Host != fmt.Sprintf("127.0.1.%d", 1+i) || x.Here != (i == self) || x.Problem != "" || s.Agents[i].Address != x.Host || s.Ranks[2*i].Rank != 2*i {
				t.Errorf("host %d: %+v", self, x)
			}
		}
		jobs := []links.Job{j}
		links.MeasureAll(t.Context(), jobs, found, time.Minute, false)
		for _, p := range jobs[0].Pairs {
			if x := p.Speed; x == nil || x.Problem != "" || x.HalfTrip <= 0 || x.How != links.HowProbe {
				t.Errorf("host %d: ranks %d and %d: %+v", self, p.A, p.B, x)
			}
		}
	}
	// Of several nodes of a site that are found here, each host is told of once.
	var dirs []string
	for _, n := range all[0][1:] {
		dirs = append(dirs, n.n.dir.Path)
	}
	found := links.Survey(t.Context(), dirs, patience, links.Request{})
	if len(found) != 3 || !found[0].Forwarded || found[1].Forwarded || found[2].Forwarded {
		t.Errorf("%+v", found)
	}
}

// TestReloadOnAnotherHost has a plugin replaced where it is meant, and nowhere else.
func TestReloadOnAnotherHost(t *testing.T) {
	all := startApart(t, route(clusterJob("linked", 1, 3, 1), config.Route{Prefer: []string{"tcp"}, Direct: true}))
	awaitSums(t, all)
	pids := func() (list []int) {
		for _, n := range all[0] {
			list = append(list, n.n.routes.Transport("tcp").Plugin.Status().PID)
		}
		return list
	}
	before := pids()
	r := links.Request{Op: links.OpReload, Transport: "tcp", Host: "127.0.1.3"}
	a := all[0][1].n.control.Answer(t.Context(), r)
	after := pids()
	if a.Error != "" || a.Reload.Before.PID != before[2] || a.Reload.After.PID != after[2] || before[2] == after[2] {
		t.Errorf("%s: %+v, from %v to %v", a.Error, a.Reload, before, after)
	}
	if before[0] != after[0] || before[1] != after[1] {
		t.Errorf("from %v to %v", before, after)
	}
	r.Transport = "pigeon"
	if a := all[0][1].n.control.Answer(t.Context(), r); !strings.Contains(a.Error, `"pigeon"`) {
		t.Errorf("%+v", a)
	}
	r.Host = "127.0.2.1" // of the other site
	if a := all[0][1].n.control.Answer(t.Context(), r); !strings.Contains(a.Error, "no node for host 127.0.2.1") {
		t.Errorf("%+v", a)
	}
}

// TestTraceAndResumeOnAllHosts: what the file says of traces and of links that break holds on all
// hosts of a site: each proc writes its packets, and channels between hosts are made again.
func TestTraceAndResumeOnAllHosts(t *testing.T) {
	dir := t.TempDir()
	job := route(clusterJob("linked", 1, 3, 1), config.Route{Prefer: []string{"tcp"}, DataPlane: []string{"ring"}, Resume: true})
	for i := range job.Sites {
		job.Sites[i].Log.Trace = filepath.Join(dir, "packets-%r.txt")
	}
	all := startApart(t, job)
	awaitSums(t, all)
	if err := syscall.Kill(all[0][1].n.routes.Transport("tcp").Plugin.Status().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for resumed := 0; resumed < 5; { // ends of the three channels of host 1, one of which is at the other site; the answers take time
		_, j := ofSite(t, all[0][2], links.Request{})
		resumed = 0
		for _, c := range j.Channels {
			if c.State == links.StateLinked && c.Resumes > 0 && (c.From == 1 || c.To == 1) {
				resumed++
			}
		}
	}
	for rank := range 4 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("packets-%d.txt", rank)))
		if err != nil || !strings.Contains(string(b), "DATA") {
			t.Errorf("rank %d has traced %d bytes: %v", rank, len(b), err)
		}
	}
}

// TestHostsAtOneAddress: hosts with the same address are hosts of one job, each of which is told
// of, and of which a plugin is replaced at the one that is meant.
func TestHostsAtOneAddress(t *testing.T) {
	job := route(clusterJob("linked", 1, 3), config.Route{Prefer: []string{"tcp"}, Direct: true})
	for i := range job.Sites[0].Hosts {
		job.Sites[0].Hosts[i].Address = job.Sites[0].Hosts[0].Address
	}
	self := 0
	all := startApart(t, job, func(o *Options) { o.Site.Server.Embedded = self == 0; self++ })
	awaitSums(t, all)
	var dirs []string
	for _, n := range all[0] {
		dirs = append(dirs, n.n.dir.Path)
		found, j := ofSite(t, n, links.Request{All: true})
		if s := j.Sites[0]; len(found) != 3 || len(s.Nodes) != 3 || len(s.Ranks) != 3 || len(j.Pairs) != 3 {
			t.Errorf("%d nodes, %d pairs: %+v", len(found), len(j.Pairs), s)
		}
	}
	found := links.Survey(t.Context(), dirs, patience, links.Request{})
	if jobs := links.ByJob(found); len(found) != 3 || len(jobs) != 1 {
		t.Errorf("%d nodes of %d jobs", len(found), len(jobs))
	}
	pid := func(host int) int { return all[0][host].n.routes.Transport("tcp").Plugin.Status().PID }
	before := []int{pid(0), pid(1), pid(2)}
	r := links.Request{Op: links.OpReload, Transport: "tcp", Host: "127.0.1.1", Number: 3}
	if a := all[0][1].n.control.Answer(t.Context(), r); a.Error != "" || a.Reload.Before.PID != before[2] {
		t.Errorf("%+v", a)
	}
	if pid(0) != before[0] || pid(1) != before[1] || pid(2) == before[2] {
		t.Errorf("from %v to %d, %d, %d", before, pid(0), pid(1), pid(2))
	}
	r.Number = 4
	if a := all[0][1].n.control.Answer(t.Context(), r); !strings.Contains(a.Error, "no node for host 127.0.1.1") {
		t.Errorf("%+v", a)
	}
}

// TestHostThatDoesNotAnswer is named, and the others are shown.
func TestHostThatDoesNotAnswer(t *testing.T) {
	all := startApart(t, clusterJob("linked", 1, 3, 1))
	awaitSums(t, all)
	all[0][2].n.cluster.AnswerBy(client.Inspection, func(ctx context.Context, _ []byte) []byte {
		<-ctx.Done()
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	a := all[0][1].n.control.Answer(ctx, links.Request{Op: links.OpLinks})
	if ctx.Err() != nil || a.Node == nil || len(a.Others) != 2 || a.Others[0].Node == nil {
		t.Fatalf("%v: %+v", ctx.Err(), a)
	}
	if x := a.Others[1]; x.Node != nil || x.About.Host != "127.0.1.3" || x.Error != links.ErrSilent.Error() {
		t.Errorf("%+v", x)
	}
}

// TestHostsCountTheirProcs: hosts whose file says "auto" know their own number of procs alone, and
// all of them that of the others before they start any; a host that does not come is named.
func TestHostsCountTheirProcs(t *testing.T) {
	begin := func(t *testing.T, limit time.Duration, counts []int, hosts ...int) (all []*running) {
		job := clusterJob("says", 0, len(counts))
		job.Limits.Start = limit
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		for _, self := range hosts {
			mine := *job
			mine.Sites = slices.Clone(job.Sites)
			s := &mine.Sites[0]
			s.Hosts = slices.Clone(s.Hosts)
			for i := range s.Hosts {
				s.Hosts[i].Auto = true
			}
			s.Hosts[self].Procs = counts[self]
			s.Server.Embedded = self == 0
			s.Program.Stdin = -1
			all = append(all, startSites(t, &mine, mine.Sites, func(o *Options) {
				o.Cluster = &client.ClusterConfig{Hosts: s.Hosts, Self: self, Secret: []byte("secret"), Head: ln.Addr().String()}
				if self == 0 {
					o.Cluster.Listener = ln
				}
			})...)
		}
		return all
	}
	t.Run("all", func(t *testing.T) {
		all := begin(t, time.Minute, []int{2, 3, 1}, 2, 0, 1)
		wantNone(t, all)
		for rank := range 6 {
			if countLines(all[1].out, fmt.Sprintf(`\[%d\] here`, rank)) != 1 {
				t.Errorf("there is nothing of rank %d", rank)
			}
		}
		for i, want := range []int{5, 0, 2} {
			if got := all[i].n.routes.ProcsBefore; got != want {
				t.Errorf("node %d: %d procs before its own, not %d", i, got, want)
			}
		}
	})
	t.Run("one is missing", func(t *testing.T) {
		for i, f := range end(begin(t, 3*time.Second, []int{2, 3, 1}, 0, 1)) {
			if f == nil || f.Status != ending.StatusTimeout || !strings.Contains(f.Text, "missing: 127.0.1.3") {
				t.Errorf("node %d: %v", i, f)
			}
		}
	})
}
