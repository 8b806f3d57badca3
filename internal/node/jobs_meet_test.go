package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/names"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/internal/vendors"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// sharedNames starts a server for names, and gives what has a job use it.
func sharedNames(t *testing.T) (s *names.Server, use func(*config.Job)) {
	t.Helper()
	s, err := names.NewServer(names.ServerConfig{Auth: startup.Auth{HasKey: true, Key: 77}})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ctx, ln)
	}()
	t.Cleanup(func() { cancel(); <-done })
	at := netip.MustParseAddrPort(ln.Addr().String())
	return s, func(j *config.Job) {
		for i := range j.Sites {
			j.Sites[i].Names = config.Names{Server: at, Scope: "tests", Auth: config.Auth{Keyed: true, Key: 77}}
		}
	}
}

// with gives all procs of a job a variable.
func with(job *config.Job, pairs ...string) *config.Job {
	for i := range job.Sites {
		for n := 0; n < len(pairs); n += 2 {
			job.Sites[i].Program.Env[pairs[n]] = pairs[n+1]
		}
	}
	return job
}

// TestJobsMeet has two jobs of several sites meet by a name, several times, by each
// transport.
func TestJobsMeet(t *testing.T) {
	for _, name := range []string{"tcp", "unix", "shm", "quic", "websocket"} {
		t.Run(name, func(t *testing.T) {
			kept, shared := sharedNames(t)
			ca := pkitest.Authority(t)
			job := func(mode string, procs ...int) *config.Job {
				j := with(testJob(mode, procs...), serviceVariable, "heat", timesVariable, "3")
				shared(j)
				switch name {
				case "quic":
					withTransport(j, name, func(site string) map[string]any { return pkitest.Site(t, site, ca, ca, nil) })
				case "websocket":
					withPlugin(t, j, name)
				default:
					withTransport(j, name, nil)
				}
				return route(j, config.Route{Prefer: []string{name}, Direct: true})
			}
			a, b := start(t, job("accepts", 2, 1)), start(t, job("connects", 1, 1))
			wantNone(t, a)
			wantNone(t, b)
			for _, r := range append(a, b...) {
				r.out.Line(t, fmt.Sprintf("[%d] done", r.n.job.Clients[r.n.job.Self].FirstProc))
				log := r.err.String()
				links := 0
				for line := range strings.Lines(log) {
					if strings.Contains(line, "link of another world: ") {
						links++
						if !strings.Contains(line, "transport="+name+" ") {
							t.Errorf("another transport: %s", line)
						}
					}
				}
				if links < 2 { // to each proc of the other job
					t.Errorf("site %s had %d links", r.n.opt.Site.Name, links)
				}
				if strings.Contains(log, "key=") {
					t.Errorf("a log has the name of a port:\n%s", log)
				}
			}
			if n := kept.Len(); n != 0 {
				t.Errorf("%d names are left", n)
			}
		})
	}
}

// withPlugin gives a job a transport of the examples' plugins.
func withPlugin(t *testing.T, j *config.Job, name string) {
	t.Helper()
	g, err := vendors.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	path, err := g.Build("../..")
	var missing *vendors.MissingError
	if errors.As(err, &missing) {
		skips.NotRun(t, missing.What, missing.Remedy)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range j.Sites {
		j.Sites[i].Transports = append(j.Sites[i].Transports, config.Transport{Name: name, Plugin: path, Path: path, NoMTLS: g.NoMTLS})
	}
}

// TestJobsMeetAgainAndAgain: nothing grows in procs or nodes. A descriptor or goroutine
// that is lost each time shows soon; memory is looked at when there is enough of it to
// tell growth from noise.
func TestJobsMeetAgainAndAgain(t *testing.T) {
	_, shared := sharedNames(t)
	times := soak.Repetitions(200, 1000)
	job := func(mode string) *config.Job {
		j := with(testJob(mode, 1), serviceVariable, "heat", timesVariable, fmt.Sprint(times))
		shared(j)
		return j
	}
	a, b := start(t, job("accepts"))[0], start(t, job("connects"))[0]
	for _, r := range []*running{a, b} {
		var fds, routines, kib int
		if _, err := fmt.Sscan(r.out.Line(t, "[0] grown "), &fds, &routines, &kib); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d descriptors, %d goroutines, %d KiB more after %d times", fds, routines, kib, times)
		if fds > 2 || routines > 2 || kib > max(256, times) {
			t.Errorf("%d descriptors, %d goroutines, %d KiB more", fds, routines, kib)
		}
	}
	wantNone(t, []*running{a, b})
	for _, r := range []*running{a, b} {
		if ports, requests, pairs := r.n.meetings.Counts(); ports+requests+pairs > 0 {
			t.Errorf("the node has %d ports, %d requests, %d pairs", ports, requests, pairs)
		}
	}
}

// TestNamesOfAJob goes to the job's own server, from several sites, and to a shared one.
func TestNamesOfAJob(t *testing.T) {
	for _, where := range []string{"own", "embedded", "shared"} {
		t.Run(where, func(t *testing.T) {
			job := with(testJob("names", 1, 1), serviceVariable, "heat")
			if where == "embedded" {
				job = with(testJob("names", 1), serviceVariable, "heat")
			}
			var in string
			if where == "shared" {
				s, shared := sharedNames(t)
				shared(job)
				in = "MPI_ERR_NAME"
				defer func() {
					if s.Len() != 0 {
						t.Errorf("%d names are left", s.Len())
					}
				}()
			} else {
				in = "MPI_SUCCESS"
			}
			for i := range job.Sites {
				job.Sites[i].Program.Env[serviceVariable] = job.Sites[i].Name // each its own
			}
			all := start(t, job)
			wantNone(t, all)
			for i, r := range all {
				want := "before MPI_ERR_NAME|publish MPI_SUCCESS|again MPI_ERR_SERVICE|lookup hunter2 MPI_SUCCESS|" +
					"foreign MPI_ERR_SERVICE|job " + in + "|bad MPI_SUCCESS|ready|unpublish MPI_SUCCESS|"
				var got strings.Builder
				for line := range strings.Lines(r.out.String()) {
					if text, ok := strings.CutPrefix(line, fmt.Sprintf("[%d] ", i)); ok && !strings.HasPrefix(text, "pid") && !strings.HasPrefix(text, "rank") {
						got.WriteString(strings.TrimSuffix(text, "\n") + "|")
					}
				}
				if got.String() != want {
					t.Errorf("site %d:\n%s\nwant\n%s", i, got.String(), want)
				}
				if strings.Contains(r.err.String(), "hunter2") {
					t.Errorf("a log has a port:\n%s", r.err)
				}
			}
		})
	}
}

// TestPortsThatCannotBeCalled: each is refused, with the class of ports.
func TestPortsThatCannotBeCalled(t *testing.T) {
	r := start(t, testJob("ports", 1))[0]
	wantNone(t, []*running{r})
	out := r.out.String()
	for _, what := range []string{"malformed", "empty", "wrong key", "unaccepted", "closed", "close again", "accept closed", "accept expired", "expired"} {
		if !strings.Contains(out, "[0] "+what+" MPI_ERR_PORT\n") {
			t.Errorf("%s: want MPI_ERR_PORT in\n%s", what, out)
		}
	}
	if !strings.Contains(out, "[0] close expired MPI_SUCCESS\n") {
		t.Error(out)
	}
	for _, secret := range []string{"key=", "hunter2"} {
		if strings.Contains(out+r.err.String(), secret) {
			t.Errorf("%q is shown:\n%s%s", secret, out, r.err)
		}
	}
}

// procsGone waits until the procs of a site are no more.
func procsGone(t *testing.T, all ...*running) {
	t.Helper()
	for _, r := range all {
		<-r.done
		for _, p := range r.n.procs.All() {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID())); err == nil {
				t.Errorf("%v is still there", p.ID())
			}
		}
		if _, err := os.Stat(r.n.dir.Path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", r.n.dir.Path, err)
		}
	}
}
