package node

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/ui"
)

// TestUI: a node serves the page of its job, with what the other site's node knows and its own log,
// to who has the address from its run directory.
func TestUI(t *testing.T) {
	job := route(testJob("linked", 2, 2), config.Route{Prefer: []string{"unix", "tcp"}, Direct: true})
	job.Sites[0].UI.Listen = netip.MustParseAddrPort("127.0.0.1:0")
	all := start(t, job, func(o *Options) { o.Logger = nil }) // the node's own
	for _, s := range all {
		<-s.n.ready
		for i := range s.n.procs.All() {
			s.out.Line(t, prefixOf(s.n, i)+"sum ")
		}
	}
	n := all[0].n
	file := filepath.Join(n.dir.Path, ui.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := os.Stat(file); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others can read the token", s.Mode(), err)
	}
	var out, errs strings.Builder
	if status := ui.Command().Execute([]string{"-run-dir", n.opt.RunBase}, &out, &errs); status != 0 || out.String() != string(text) {
		t.Errorf("impi-node ui: status %d, %q, %s", status, out.String(), errs.String())
	}
	url := strings.TrimSpace(string(text))
	jar, _ := cookiejar.New(nil)
	browser := http.Client{Jar: jar}
	page, _, _ := strings.Cut(url, "?")
	get := func(what string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, what, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %s: %s", what, err, a.Status, b)
		}
		return string(b)
	}
	if html := get(url); !strings.Contains(html, "page.js") {
		t.Errorf("the page is %s", html)
	}
	var m struct {
		Jobs []struct {
			Sites []struct{ Name, Phase string }
			Ranks []struct {
				Rank  int
				State string
			}
			Matrix struct {
				Cells []struct {
					From, To  int
					Messages  uint64
					Transport string
				}
			}
			Log []struct{ Text, Site string }
		}
	}
	if err := json.Unmarshal([]byte(get(page+"api/job")), &m); err != nil || len(m.Jobs) != 1 {
		t.Fatalf("%v, %+v", err, m)
	}
	j := m.Jobs[0]
	if len(j.Sites) != 2 || j.Sites[1].Phase != "running" || len(j.Ranks) != 4 || j.Ranks[3].State == "unknown" {
		t.Errorf("%+v", j)
	}
	linked := 0
	for _, c := range j.Matrix.Cells {
		if c.Transport == "unix" && c.Messages > 0 {
			linked++
		}
	}
	if linked != 12 {
		t.Errorf("%d cells of pairs that have sent by unix, want 12: %+v", linked, j.Matrix)
	}
	ready := make(map[string]bool)
	for _, l := range j.Log {
		if strings.HasPrefix(l.Text, "the job runs: ") {
			ready[l.Site] = true
		}
		if strings.Contains(l.Text, url[strings.Index(url, "=")+1:]) {
			t.Errorf("the log has the token: %s", l.Text)
		}
	}
	if !ready["alpha"] || !ready["beta"] {
		t.Errorf("the log has not that the job runs at both sites: %+v", j.Log)
	}
	if why := get(page + "api/explain?a=0&b=2"); !strings.Contains(why, "unix: ") || !strings.Contains(why, "route") {
		t.Errorf("explained as %s", why)
	}
	why := get(page + "api/explain?by=host&a=0&b=1")
	for _, want := range []string{"channel of host 0 > 1: linked by tcp, data plane fd", "channel of host 1 > 0", "unix: ", "route", `"pairs":[[0,2],[0,3],[1,2],[1,3]]`} {
		if !strings.Contains(strings.ReplaceAll(why, `\u003e`, ">"), want) {
			t.Errorf("hosts are explained as %s, without %s", why, want)
		}
	}
	if jobs := ui.Ask(context.Background(), []string{n.dir.Path}); len(jobs) != 1 || len(jobs[0].ByHost) == 0 {
		t.Errorf("%+v", jobs)
	}
}

// jobID waits until the node's run directory has the job's ID, which it gets soon after the node is
// ready, and returns it.
func jobID(t *testing.T, n *node) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		var about links.NodeInfo
		b, err := os.ReadFile(filepath.Join(n.dir.Path, links.AboutName))
		if err == nil {
			err = json.Unmarshal(b, &about)
		}
		switch {
		case err != nil:
			t.Fatal(err)
		case about.ID != "":
			return about.ID
		case time.Now().After(deadline):
			t.Fatal("the run directory has no ID of the job")
		}
		runtime.Gosched()
	}
}

// TestEnding: who awaits the end of a job hears from its nodes why it ends, at the page, too.
func TestEnding(t *testing.T) {
	job := testJob("block", 2, 2)
	job.Sites[1].UI.Listen = netip.MustParseAddrPort("127.0.0.1:0")
	all := start(t, job)
	for _, s := range all {
		<-s.n.ready
	}
	pid := all[1].out.Number(t, "[2] pid ")
	n := all[1].n
	id := jobID(t, all[0].n)
	if other := jobID(t, n); other != id {
		t.Fatalf("the sites call their job %s and %s", id, other)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	told := make(chan *links.Ending, 1)
	go func() { told <- links.AwaitEnding(ctx, []string{all[0].n.dir.Path, n.dir.Path}, id) }()
	page := make(chan string, 1)
	go func() {
		jar, _ := cookiejar.New(nil)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(n.ui.URL(), "/?", "/api/ending?job="+id+"&", 1), nil)
		if err != nil {
			page <- err.Error()
			return
		}
		a, err := (&http.Client{Jar: jar}).Do(r)
		if err != nil {
			page <- err.Error()
			return
		}
		defer a.Body.Close()
		b, _ := io.ReadAll(a.Body)
		page <- string(b)
	}()
	for n.control.End.Awaiting() < 2 || all[0].n.control.End.Awaiting() < 1 {
		if ctx.Err() != nil {
			t.Fatalf("%d and %d await the end, want 1 and 2", all[0].n.control.End.Awaiting(), n.control.End.Awaiting())
		}
		runtime.Gosched()
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const want = "rank 2 on site beta was killed by SIGKILL"
	wantAll(t, all, want)
	if e := <-told; e == nil || !strings.Contains(e.Failure, want) {
		t.Errorf("told %+v", e)
	}
	if text := <-page; !strings.Contains(text, want) || !strings.Contains(text, `"site":"beta"`) {
		t.Errorf("the page is told %s", text)
	}
	if e := links.AwaitEnding(ctx, []string{n.dir.Path}, id); e != nil {
		t.Errorf("of a job that is over: %+v", e)
	}
}
