package node

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/site/server"
	"github.com/openimpi/impi/internal/transcript"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
	"github.com/openimpi/impi/transports/shm"
	"github.com/openimpi/impi/transports/support/chaos"
	"github.com/openimpi/impi/transports/tcp"
	unixlink "github.com/openimpi/impi/transports/unix"
)

// What the test binary is besides the tests: a plugin, or what roleVariable says.
const (
	roleVariable = "IMPI_TEST_ROLE" // "proc", "node" or "launcher"
	modeVariable = "IMPI_TEST_MODE" // of a proc: one of programs
)

func TestMain(m *testing.M) {
	if sdk.IsPlugin() {
		sdk.Serve(sdk.Options{Transport: builtinTransport(sdk.Builtin())})
	}
	switch os.Getenv(roleVariable) {
	case "proc":
		programs[os.Getenv(modeVariable)]()
		os.Exit(0)
	case "node":
		nodeMain()
		os.Exit(0)
	case "launcher":
		os.Exit(fakeLauncher())
	}
	quickExits()
	goleak.VerifyTestMain(removing{m},
		goleak.IgnoreAnyFunction("github.com/openimpi/impi/internal/poll.(*Shared).serve")) // of sleepers
}

// quickExits keeps the race detector from having every proc and plugin sleep a second
// before it exits, unless somebody has other wishes.
func quickExits() {
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
}

// removing are the tests, after which what they have built goes.
type removing struct{ *testing.M }

// Run runs them.
func (m removing) Run() int {
	defer func() { _ = os.RemoveAll(built.dir) }()
	return m.M.Run()
}

func builtinTransport(name string) transports.Transport {
	switch name {
	case "unix":
		return unixlink.New()
	case "shm":
		return shm.New()
	case "quic":
		return quic.New()
	case "cut":
		return newCutting()
	case "wide-tcp", "wide-quic":
		return newWide(name)
	case "chaos":
		return chaos.New(chaos.Options{Around: []transports.Transport{tcp.New()}})
	}
	return tcp.New()
}

// patience is what a job of these tests may take to start, and a plugin half of it.
// It only keeps tests from hanging: a start takes well below a second, and a hundred
// times that on a machine that is busy with other tests.
const patience = 5 * time.Minute

// testJob makes a job of sites alpha, beta, ... on 127.0.0.2, 127.0.0.3, ...,
// each with that many procs that run the program of mode.
func testJob(mode string, procs ...int) *config.Job {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	job := &config.Job{Dir: "/", Complete: true, Limits: config.Limits{Start: patience, Stop: 5 * time.Second}, Builtins: builtins}
	for i, n := range procs {
		job.Sites = append(job.Sites, config.Site{
			Name: siteName(i), Client: i,
			Server: config.Server{
				Embedded: len(procs) == 1, Address: netip.MustParseAddrPort("127.0.0.1:0"),
				Clients: len(procs), Timeout: patience,
			},
			Auth:  config.Auth{Keyed: true, Key: 42},
			Hosts: []config.Host{{Address: netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}), Procs: n}},
			Program: config.Program{
				Command: []string{"prog"}, Path: self, Dir: "/", PrefixOutput: true,
				Env: map[string]string{roleVariable: "proc", modeVariable: mode},
			},
			Transports: []config.Transport{builtin("unix"), builtin("tcp")},
			Protocol:   config.Protocol{DataLen: 65536, AckMark: 64, HiWater: 256, TagUB: 1<<31 - 1, XSize: -1, MaxLinear: -1},
			Wait:       config.Wait{Auto: true},
			Log:        config.Log{Level: "info", Format: "text"},
		})
	}
	return job
}

// builtins are the built-in transports of the tests' jobs, and what is known of them.
var builtins = []config.Builtin{
	{Name: "shm", Machine: true, Memory: true},
	{Name: "unix", Machine: true},
	{Name: "tcp", EncryptsBy: "tls", Channels: true, NotForChannels: []string{"tls", "also"}},
	{Name: "quic", NeedsBlock: true, Encrypts: true},
}

// builtin is a transport that the test binary is the plugin of.
func builtin(name string) config.Transport {
	t := config.Transport{Name: name, Builtin: true}
	for _, x := range builtins {
		if x.Name == name {
			t.Known = x
		}
	}
	return t
}

// siteName is alpha, beta, gamma, and then a number.
func siteName(i int) string {
	if names := []string{"alpha", "beta", "gamma"}; i < len(names) {
		return names[i]
	}
	return fmt.Sprint("site", i)
}

// route gives all sites one route to everybody.
func route(job *config.Job, r config.Route) *config.Job {
	r.Site = "*"
	for i := range job.Sites {
		job.Sites[i].Routes = []config.Route{r}
	}
	return job
}

// running is a site that runs in this process.
type running struct {
	n        *node
	out, err *transcript.Writer
	cancel   context.CancelCauseFunc
	now      chan struct{}
	once     sync.Once
	done     chan struct{}
	failure  *ending.Failure
}

// start runs the sites of a job, with their server apart if there are several.
func start(t testing.TB, job *config.Job, change ...func(*Options)) []*running {
	t.Helper()
	serveApart(t, job)
	return startSites(t, job, job.Sites, change...)
}

// startSites runs some of the sites of a job.
func startSites(t testing.TB, job *config.Job, sites []config.Site, change ...func(*Options)) []*running {
	t.Helper()
	base := launchtest.ShortDir(t)
	var all []*running
	for _, site := range sites {
		r := &running{out: &transcript.Writer{}, err: &transcript.Writer{}, now: make(chan struct{}), done: make(chan struct{})}
		opt := Options{
			Job: job, Site: site, EndNow: r.now, Stdout: r.out, Stderr: r.err, RunBase: base,
			Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: r.err}),
		}
		for _, f := range change {
			f(&opt)
		}
		var ctx context.Context
		ctx, r.cancel = context.WithCancelCause(context.Background())
		r.n = newNode(opt)
		go func() {
			defer close(r.done)
			defer r.out.Close()
			defer r.err.Close()
			r.failure = r.n.life(ctx).Failure
		}()
		t.Cleanup(func() {
			r.hurry()
			r.cancel(fmt.Errorf("the test is over"))
			<-r.done
			if t.Failed() {
				t.Logf("site %s: %v\n%s\n%s", site.Name, r.failure, r.out, r.err)
			}
		})
		all = append(all, r)
	}
	return all
}

// hurry is the operator's second signal.
func (r *running) hurry() { r.once.Do(func() { close(r.now) }) }

// serveApart starts the server of a job with several sites.
func serveApart(t testing.TB, job *config.Job) {
	t.Helper()
	if len(job.Sites) == 1 {
		return
	}
	apart := *job // the sites get the address below
	apart.Sites = slices.Clone(job.Sites)
	s, err := server.Serve(&apart, apart.Sites[0], hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for i := range job.Sites {
		job.Sites[i].Server.Address = s.Address()
	}
}

// end waits for all sites and gives their failures.
func end(all []*running) []*ending.Failure {
	failures := make([]*ending.Failure, len(all))
	for i, r := range all {
		<-r.done
		failures[i] = r.failure
	}
	return failures
}

// wantAll wants every site to end with a failure of that text.
func wantAll(t *testing.T, all []*running, text string) []*ending.Failure {
	t.Helper()
	failures := end(all)
	for i, f := range failures {
		if f == nil || f.Text != text {
			t.Errorf("site %d ended with %q, want %q", i, fmt.Sprint(f), text)
		}
	}
	return failures
}

// wantNone wants every site to end well.
func wantNone(t *testing.T, all []*running) {
	t.Helper()
	for i, f := range end(all) {
		if f != nil {
			t.Errorf("site %d failed: %v", i, f)
		}
	}
}

// tooLate is what a job says whose procs have not started within its limit.
const tooLate = "passed while waiting for MPI Init of proc"

// endsInTime returns the failure of a job that must end by its own limit for starting.
// That limit has to be longer than the job's own procs need to start, which depends on
// the machine: where it was not, try has another go with one that is four times as long.
func endsInTime(t *testing.T, first time.Duration, try func(limit time.Duration) *ending.Failure) (f *ending.Failure, limit time.Duration) {
	t.Helper()
	for limit = first; ; limit *= 4 {
		f = try(limit)
		if f == nil || !strings.Contains(f.Text, tooLate) || limit > patience {
			return f, limit
		}
	}
}
