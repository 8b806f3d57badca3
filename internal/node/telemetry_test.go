package node

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/telemetry/telemetrytest"
)

func init() { lastSpans = patience }

// ownLogger has a node make its logger as the file says, whose lines become spans.
func ownLogger(o *Options) {
	o.Logger = nil
}

// collected has the sites of a job tell a collector.
func collected(t *testing.T, job *config.Job) *telemetrytest.Collector {
	t.Helper()
	c := telemetrytest.New(t)
	for i := range job.Sites {
		job.Sites[i].Trace.OTLP = c.URL
	}
	return c
}

// spansOf returns the spans of a site by their names, which are separated by commas.
func spansOf(spans []telemetrytest.Span, site string) (names string, by map[string]telemetrytest.Span) {
	by = make(map[string]telemetrytest.Span)
	var all []string
	for _, s := range spans {
		if s.Resource["impi.site"] == site {
			by[s.Name] = s
			all = append(all, s.Name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", "), by
}

// TestStepsAreSpans: all sites are in one trace, with the steps of their nodes.
func TestStepsAreSpans(t *testing.T) {
	job := testJob("all", 2, 1)
	c := collected(t, job)
	wantNone(t, start(t, job, ownLogger))
	spans := c.All() // the nodes have sent them before they ended
	var root telemetrytest.Span
	for i, site := range job.Sites {
		names, by := spansOf(spans, site.Name)
		want := "MPI_Init, dance, listen, node SITE, procs start, run, server starts, startup at the server, transports, wireup"
		if i == 0 {
			want = strings.Replace(want, "dance, ", "dance, job NAME, ", 1)
			root = by["job "+job.Name()]
		}
		if want = strings.NewReplacer("SITE", site.Name, "NAME", job.Name()).Replace(want); names != want {
			t.Errorf("site %s: %s\nwant %s", site.Name, names, want)
		}
		node := by["node "+site.Name]
		for name, s := range by {
			parent := node.ID
			switch name {
			case "node " + site.Name:
				parent = root.ID
			case "job " + job.Name():
				parent = ""
			}
			if s.Trace != root.Trace || s.Parent != parent || s.Failed != "" || s.Ended < s.Begun || s.Resource["impi.job"] != job.Name() {
				t.Errorf("site %s: %+v", site.Name, s)
			}
		}
		if a := by["startup at the server"]; a.Begun < by["MPI_Init"].Ended || a.Ended > by["run"].Begun {
			t.Errorf("site %s: startup is at another time: %+v", site.Name, by)
		}
	}
	if root.ID == "" || root.Attributes["impi.procs"] != "3" {
		t.Errorf("%+v", root)
	}
}

// TestFailureIsInSpans: the spans of what a job has failed in say why, and those of a job whose
// program does not call MPI are not failures.
func TestFailureIsInSpans(t *testing.T) {
	job := testJob("abort", 2, 1)
	c := collected(t, job)
	f := end(start(t, job, ownLogger))
	if spans := c.All(); len(spans) < 20 {
		t.Errorf("%d spans", len(spans))
	}
	for _, s := range c.All() {
		failed := s.Name == "run" || strings.HasPrefix(s.Name, "node ") || strings.HasPrefix(s.Name, "job ")
		if failed != (s.Failed != "") && s.Attributes["log.severity"] == "" {
			t.Errorf("%+v, and the job: %v", s, f)
		}
	}
	job = testJob("", 1)
	job.Sites[0].Program.Path = "/bin/true"
	c = collected(t, job)
	wantNone(t, start(t, job, ownLogger))
	names, by := spansOf(c.All(), job.Sites[0].Name)
	if s := by["MPI_Init"]; s.ID == "" || s.Failed != "" || by["node alpha"].Failed != "" {
		t.Errorf("%s: %+v", names, s)
	}
}

// TestSpawnsAreSpans: those that succeed, and those that do not.
func TestSpawnsAreSpans(t *testing.T) {
	job := spawnJob([]order{spawns("child", 3), {Commands: []ordered{{Path: "/nowhere/prog", Procs: 2}}}}, 2)
	c := collected(t, job)
	wantNone(t, start(t, job, ownLogger))
	spans := c.All()
	_, by := spansOf(spans, job.Sites[0].Name)
	var said []string
	for _, s := range spans {
		if s.Name == "spawn" {
			said = append(said, s.Attributes["impi.procs"]+" "+s.Attributes["impi.world"]+" "+s.Failed)
			if s.Parent != by["node "+job.Sites[0].Name].ID || s.Attributes["impi.rank"] != "0" {
				t.Errorf("%+v", s)
			}
		}
	}
	slices.Sort(said)
	for _, s := range spans {
		world, ok := strings.CutPrefix(s.Name, "world ")
		if !ok {
			continue
		}
		said = append(said, world+" "+s.Attributes["impi.procs"]+" "+s.Attributes["impi.hosts"])
		of := slices.IndexFunc(spans, func(x telemetrytest.Span) bool { return x.ID == s.Parent })
		if of < 0 || spans[of].Name != "spawn" || spans[of].Attributes["impi.world"] != s.Attributes["impi.world"] || s.Trace != spans[of].Trace {
			t.Errorf("%+v is part of span %d", s, of)
		}
		steps := 0
		for _, x := range spans {
			if x.Parent == s.ID {
				steps++
			}
		}
		if steps < 5 {
			t.Errorf("%d steps of %+v", steps, s)
		}
	}
	if len(said) != 3 || said[2] != "spawn1 at alpha 3 127.0.0.2:3" || !strings.HasPrefix(said[0], "2 ") || !strings.Contains(said[0], "/nowhere/prog") || !strings.HasPrefix(said[1], "3 spawn1") {
		t.Errorf("%q", said)
	}
}

// TestFaultsAreSpans: what happens to a job is at the collector while it runs.
func TestFaultsAreSpans(t *testing.T) {
	job := route(testJob("linked", 1, 1), config.Route{Prefer: []string{"unix", "tcp"}, Direct: true})
	c := collected(t, job)
	all := start(t, job, ownLogger)
	for _, s := range all {
		<-s.n.ready
	}
	n := all[1].n
	if err := syscall.Kill(n.routes.Transports[0].Plugin.Status().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	spans := c.Await(t, func(spans []telemetrytest.Span) bool {
		_, by := spansOf(spans, job.Sites[1].Name)
		return by["plugin is down"].ID != ""
	})
	_, by := spansOf(spans, job.Sites[1].Name)
	if s := by["plugin is down"]; s.Failed == "" || s.Trace != by["wireup"].Trace || s.Parent != by["wireup"].Parent || !strings.Contains(s.Attributes["impi.error"], "killed") {
		t.Errorf("%+v", s)
	}
}

// TestResumesAreSpans: which link, and by what. One that is over is no failure.
func TestResumesAreSpans(t *testing.T) {
	job := route(secured(t, testJob("chatter", 1, 1), "tcp"), config.Route{Prefer: []string{"tcp"}, Direct: true, Resume: true})
	job.Limits.Resume = patience
	c := collected(t, job)
	all := start(t, job, ownLogger)
	for _, s := range all {
		<-s.n.ready
	}
	for _, x := range all[1].n.routes.Transports {
		if x.Name == "tcp" { // links pass through it, as they are encrypted
			if err := syscall.Kill(x.Plugin.Status().PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	resumed := func(s telemetrytest.Span) bool {
		return s.Name == "a channel is resumed" || s.Name == "a direct link is resumed"
	}
	spans := c.Await(t, func(spans []telemetrytest.Span) bool { return slices.ContainsFunc(spans, resumed) })
	s := spans[slices.IndexFunc(spans, resumed)]
	if s.Failed != "" || s.Attributes["impi.from"] == "" || s.Attributes["impi.to"] == "" || s.Attributes["impi.after"] == "" {
		t.Errorf("%+v", s)
	}
}

// TestMuteCollector: a job that a collector does not answer runs and ends as it does without one.
func TestMuteCollector(t *testing.T) {
	over := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer mute.Close()
	defer close(over)
	defer func(was time.Duration) { lastSpans = was }(lastSpans)
	lastSpans = 100 * time.Millisecond
	job := testJob("all", 2, 1)
	for i := range job.Sites {
		job.Sites[i].Trace.OTLP = mute.URL
	}
	all := start(t, job, ownLogger)
	wantNone(t, all)
	for i, r := range all {
		if said := r.err.String(); strings.Count(said, "the trace of the job is incomplete") != 1 {
			t.Errorf("site %d says %s", i, said)
		}
	}
}

// TestHostsShareATrace: of sites with a node for each host, all are in it, and one speaks for the
// job.
func TestHostsShareATrace(t *testing.T) {
	job := clusterJob("all", 1, 2, 2)
	c := collected(t, job)
	wantNone(t, flat(startApart(t, job, ownLogger)))
	spans := c.All()
	count := make(map[string]int)
	var root string
	for _, s := range spans {
		if count[s.Name]++; s.Parent == "" {
			root = s.ID
		}
		if s.Trace != spans[0].Trace {
			t.Errorf("another trace: %+v", s)
		}
	}
	for _, s := range spans {
		if strings.HasPrefix(s.Name, "node ") != (s.Parent == root) {
			t.Errorf("part of another span: %+v", s)
		}
	}
	for name, want := range map[string]int{
		"job " + job.Name(): 1, "hosts meet": 4, "run": 4, "startup at the server": 4,
		"node alpha 127.0.1.1": 1, "node alpha 127.0.1.2": 1, "node beta 127.0.2.1": 1, "node beta 127.0.2.2": 1,
	} {
		if count[name] != want {
			t.Errorf("%d spans %s, want %d: %v", count[name], name, want, count)
		}
	}
}
