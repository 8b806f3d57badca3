package node

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/jobreport"
)

// spawnsHere has a world with procs at both sites of a job, which at alpha are two clients of it.
func spawnsHere(mode, end string) order {
	o := spawns(mode, 2)
	for _, host := range []string{"beta", "localhost"} {
		o.Commands = append(o.Commands, ordered{Mode: mode, Procs: 1, Info: map[string]string{"host": host}})
	}
	o.Stop, o.Keep = end, end != ""
	return o
}

// recordsOf makes a job of two sites whose procs spawn leave a report and timelines in a folder,
// and serve metrics.
func recordsOf(t *testing.T, dir, report string, o order) *config.Job {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	job := spawnJob([]order{o}, 1, 1)
	job.Report.Path = filepath.Join(dir, report)
	for i := range job.Sites {
		s := &job.Sites[i]
		s.Spawn.Allow = []string{self}
		s.Metrics.Listen, s.Metrics.Calls = netip.MustParseAddrPort("127.0.0.1:0"), true
		s.Trace.Calls = filepath.Join(dir, "calls-%r.json")
	}
	job.Sites[1].Program.Env[modeVariable] = "either"
	return job
}

// TestRecordsOfSpawned: a spawned world leaves reports of its own, one by each of its clients'
// heads, and the calls of its procs.
func TestRecordsOfSpawned(t *testing.T) {
	for name, report := range map[string]string{"pattern": "r-%j.html", "name": "r.html"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			job := recordsOf(t, dir, report, spawnsHere("child", ""))
			all := start(t, job)
			wantNone(t, all)
			name := "r-" + job.Name() + "_alpha.spawn1"
			if report == "r.html" {
				name = "r-alpha.spawn1"
			}
			for _, by := range []string{"alpha.0", "beta", "alpha.2"} {
				r, err := jobreport.Read(filepath.Join(dir, name+"-"+by+".html"))
				if err != nil {
					left, _ := filepath.Glob(dir + "/*")
					t.Fatalf("%v, and there are %q", err, left)
				}
				if r.By != by || r.Job != job.Name()+"/alpha.spawn1" || len(r.Sites) != 3 || r.Failure != "" || !r.Whole || len(r.Ranks) != 4 {
					t.Errorf("%+v", r)
				}
				for _, x := range r.Ranks {
					if x.Time == 0 || x.Classes["recv"]+x.Classes["wait"] == 0 || x.State != "exited with status 0" && x.Site == by {
						t.Errorf("%+v", x)
					}
				}
			}
			hosts := make(map[int]bool)
			for _, who := range []string{"0", "1", "alpha.spawn1.0", "alpha.spawn1.1", "alpha.spawn1.2", "alpha.spawn1.3"} {
				text, err := os.ReadFile(filepath.Join(dir, "calls-"+who+".json"))
				if err != nil {
					t.Fatal(err)
				}
				var events []struct {
					Name string
					PID  int
					Args struct{ Name string }
				}
				if err := json.Unmarshal(text, &events); err != nil || len(events) < 3 {
					t.Fatalf("%s: %v, %d events", who, err, len(events))
				}
				world := strings.Contains(who, "spawn")
				if has := strings.HasSuffix(events[1].Args.Name, "of alpha.spawn1"); has != world || !strings.HasPrefix(events[1].Args.Name, "rank "+who[len(who)-1:]) {
					t.Errorf("%s is called %+v", who, events[:2])
				}
				hosts[events[2].PID] = true
			}
			if len(hosts) != 5 { // those of alpha's first client are one
				t.Errorf("the hosts of all are %v", hosts)
			}
		})
	}
}

// TestMetricsOfSpawned: while a spawned world runs, the site's node serves the metrics of its procs
// there; what the world does not have of its own is not served twice.
func TestMetricsOfSpawned(t *testing.T) {
	job := recordsOf(t, t.TempDir(), "r-%j.html", spawnsHere("steady", "hang"))
	job.Sites[1].Program.Env[modeVariable] = "either-steady"
	all := start(t, job)
	for rank, site := range []int{0, 0, 1, 0} {
		all[site].out.Line(t, fmt.Sprintf("[alpha.spawn1.%d] steady", rank))
	}
	for i, want := range [][]string{{`site="alpha.0",state="running"} 2`, `site="alpha.2",state="running"} 1`}, {`site="beta",state="running"} 1`}} {
		text := scraped(t, all[i])
		for _, line := range want {
			if line = `impi_procs{mpi_job="` + job.Name() + `/alpha.spawn1",` + line + "\n"; strings.Count(text, line) != 1 {
				t.Errorf("site %d: no %q in\n%s", i, line, text)
			}
		}
		procs := regexp.MustCompile(`(?m)^impi_proc_sleeps_total\{mpi_job=".*/alpha.spawn1",rank="(.)"`).FindAllStringSubmatch(text, -1)
		var ranks []string
		for _, m := range procs {
			ranks = append(ranks, m[1])
		}
		slices.Sort(ranks)
		if want := [][]string{{"0", "1", "3"}, {"2"}}[i]; !slices.Equal(ranks, want) {
			t.Errorf("site %d has ranks %q, want %q", i, ranks, want)
		}
		if !regexp.MustCompile(`(?m)^impi_proc_calls_total\{class="wait",mpi_job=".*/alpha.spawn1",`).MatchString(text) {
			t.Errorf("site %d: calls of spawned procs are not served", i)
		}
		if n := len(regexp.MustCompile(`(?m)^impi_plugin_starts_total\{.*transport="tcp"\}`).FindAllString(text, -1)); n != 1 {
			t.Errorf("site %d serves tcp's plugin %d times", i, n)
		}
	}
	for _, r := range all {
		r.cancel(fmt.Errorf("the test is over"))
	}
	end(all)
}

func scraped(t *testing.T, r *running) string {
	t.Helper()
	answer, err := http.Get("http://" + r.n.metrics.Address().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, status %d: %s", err, answer.StatusCode, text)
	}
	return string(text)
}
