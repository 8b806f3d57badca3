package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/soak"
)

// examples are programs of the folder examples, and the line of their output that
// is the same whatever happens to their links.
var examples = []struct {
	name   string
	args   []string
	result *regexp.Regexp
}{
	{"ring", []string{"-rounds", "3000"}, regexp.MustCompile(`ring: 4 ranks, 3000 rounds: .* path [0-9a-f]{16}, as it must be`)},
	{"heat2d", []string{"-steps", "1500", "-tolerance", "0"}, regexp.MustCompile(`heat2d: field sha256 [0-9a-f]{64}`)},
}

// built is the folder with the examples' binaries. All tests share it.
var built = struct {
	sync.Once
	dir string
	err error
}{}

// exampleJob is a job of two sites with two procs each that run an example.
func exampleJob(t *testing.T, name string, args []string, r config.Route) *config.Job {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "impi-node-examples-"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", built.dir+"/", "../../examples/ring", "../../examples/heat2d", "../matrix/check").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	job := route(testJob("", 2, 2), r)
	for i := range job.Sites {
		job.Sites[i].Program = config.Program{
			Command: append([]string{name}, args...), Path: filepath.Join(built.dir, name), Dir: t.TempDir(), PrefixOutput: true,
		}
	}
	return job
}

// undisturbed are the results of the examples when nothing happens to their links.
var undisturbed = struct {
	sync.Mutex
	of map[string]string
}{of: make(map[string]string)}

// sameResult wants an example that was run to have the result of an undisturbed run.
func sameResult(t *testing.T, example int, all []*running) {
	t.Helper()
	wantNone(t, all)
	if t.Failed() {
		t.FailNow() // there may have been no links at all
	}
	x := examples[example]
	got := x.result.FindString(all[0].out.String())
	undisturbed.Lock()
	defer undisturbed.Unlock()
	if undisturbed.of[x.name] == "" {
		plain := start(t, exampleJob(t, x.name, x.args, config.Route{Prefer: []string{"tcp"}, Direct: true}))
		wantNone(t, plain)
		undisturbed.of[x.name] = x.result.FindString(plain[0].out.String())
	}
	if want := undisturbed.of[x.name]; got == "" || got != want {
		t.Errorf("the result is %q, and undisturbed it is %q", got, want)
	}
}

// resumed counts the resumes of all pairs.
func resumed(all []*running) int {
	var pairs []direct.Pair
	for r := range 4 {
		for peer := range 4 {
			pairs = append(pairs, direct.Pair{Local: wire.WorldRank(r), Peer: wire.WorldRank(peer)})
		}
	}
	return resumes(all, pairs...)
}

// throughPlugins is a route whose links pass through plugins.
func throughPlugins(transport, plane string) config.Route {
	return config.Route{Prefer: []string{transport}, Direct: true, DataPlane: []string{plane}, Resume: true}
}

// disturbances are what happens to the links of a job while it runs. Each gives up
// when the job is over.
var disturbances = []struct {
	name      string
	transport string
	disturb   func(t *testing.T, all []*running, transport string)
}{
	{"links cut", "chaos", func(*testing.T, []*running, string) {}},
	{"plugins killed", "tcp", func(t *testing.T, all []*running, transport string) {
		for i := range soak.Repetitions(3, 6) {
			r := all[i%2]
			n := strings.Count(r.err.String(), "a direct link is resumed")
			pid := r.plugin(transport)
			if pid == 0 {
				return
			}
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				t.Error(err)
			}
			if !r.err.Await("a direct link is resumed", n+1) { // one of its own pair's at least
				return
			}
		}
	}},
	{"plugins reloaded", "tcp", func(t *testing.T, all []*running, transport string) {
		for i := range soak.Repetitions(3, 6) {
			r := all[i%2]
			n := strings.Count(r.err.String(), "a direct link is resumed")
			switch a := r.reloadOf(transport); {
			case strings.Contains(a.Error, "was stopped by its node"), r.plugin(transport) == 0:
				return
			case a.Error != "" || a.Reload.Lost != 0:
				t.Errorf("%s, %+v", a.Error, a.Reload)
				return
			}
			if !r.err.Await("a direct link is resumed", n+1) {
				return
			}
		}
	}},
}

// plugin is the process of a site's transport, or 0 if the site is ending.
func (r *running) plugin(transport string) (pid int) {
	if t := r.n.routes.Transport(transport); t != nil && r.n.isReady() {
		pid = t.Plugin.Status().PID
	}
	return pid
}

// Programs of the examples come to the same result, to the last bit, whatever happens
// to their links while they run. make test has each program by one plane.
func TestExamplesOverLinksThatBreak(t *testing.T) {
	for i, x := range examples {
		for j, plane := range []string{"ring", "stream"} {
			for _, d := range disturbances {
				t.Run(x.name+"/"+plane+"/"+d.name, func(t *testing.T) {
					if i != j {
						soak.SkipUnlessSoak(t, "make test has each program by one plane, and each plane by one program")
					}
					if x.name == "heat2d" && d.name == "links cut" {
						soak.SkipUnlessSoak(t, "make test has links cut under ring")
					}
					job := exampleJob(t, x.name, x.args, throughPlugins(d.transport, plane))
					withTransport(job, "chaos", func(string) map[string]any { return map[string]any{"cut_bytes": 80e3} })
					all := start(t, job)
					for _, r := range all {
						r.err.Await("] direct link: site", 1)
					}
					d.disturb(t, all, d.transport)
					sameResult(t, i, all)
					if resumed(all) == 0 {
						t.Error("no link was resumed: nothing was shown")
					}
				})
			}
		}
	}
}
