package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/skips"
)

// limit is how long one job may take. Those here take seconds; it only keeps a
// test from hanging on a busy machine.
const limit = 10 * time.Minute

// datalen is the most data in a packet of a job with LAM: LAM's own figure, as the smallest
// one counts.
const datalen = 65536

// lamWarnsOfNone is what LAM says whenever a server chooses NONE.
const lamWarnsOfNone = "WARNING: IMPI server requested IMPI_AUTH_NONE authentication protocol"

// kit is what all jobs need: LAM/MPI, and our programs.
type kit struct {
	in  *Install
	bin string
}

// programs are built once for all tests.
var programs = sync.OnceValues(func() (*kit, error) {
	in, err := Find()
	if err != nil {
		return nil, err
	}
	bin, err := os.MkdirTemp("", "impi-peers-bin-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(bin, 0o755); err != nil { // for the user whom LAM runs as
		return nil, err
	}
	build := exec.Command("go", "build", "-o", bin+"/", "../../cmd/impi-node", "../../cmd/impi-server", "./exchange")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return &kit{in, bin}, in.Compile(context.Background(), filepath.Join(bin, "exchange-lam"), "testdata/exchange.c")
})

func TestMain(m *testing.M) {
	code := m.Run()
	if k, err := programs(); err == nil {
		_ = os.RemoveAll(k.bin)
	}
	if ownCTemp != "" {
		_ = os.RemoveAll(ownCTemp)
	}
	os.Exit(code)
}

// notThere skips a test for which a peer, or a program of others, is missing.
func notThere(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrMissing) {
		t.Fatal(err)
	}
	skips.NotRun(t, err.Error(), "make peers")
}

// needLAM returns the kit, or ends the test.
func needLAM(t *testing.T) *kit {
	t.Helper()
	skips.Short(t)
	if _, err := Find(); err != nil {
		notThere(t, err)
	}
	k, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// folder is a private folder that LAM's user can read.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "impi-peers-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// job is a job that runs the program exchange with some tests.
func (k *kit) job(t *testing.T, sites []Site, tests string) *Job {
	t.Helper()
	args := strings.Fields(tests)
	return &Job{
		Install: k.in, Bin: k.bin, Dir: folder(t), Sites: sites,
		Ours: append([]string{filepath.Join(k.bin, "exchange")}, args...),
		LAMs: append([]string{filepath.Join(k.bin, "exchange-lam")}, args...),
	}
}

// start starts a job that ends with the test.
func start(t *testing.T, j *Job) (context.Context, *Running) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	r, err := j.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.KillAll)
	return ctx, r
}

// succeed runs a job to its end, with which all sites must be content.
func succeed(t *testing.T, j *Job, tests ...string) {
	t.Helper()
	ctx, r := start(t, j)
	ended, left, err := r.Wait(ctx)
	if err != nil {
		t.Errorf("LAM cannot be halted: %v", err)
	}
	if len(left) > 0 {
		t.Errorf("processes of LAM are left over: %q", left)
	}
	ranks := 0
	var said strings.Builder
	for party, e := range ended {
		if e.Err != nil {
			t.Errorf("%s ended with %v", party, e.Err)
		}
		for line := range strings.Lines(e.Text) {
			if j.First != "" && strings.Contains(line, "no start at a server of the list") {
				continue // which is down
			}
			if strings.Contains(line, "impi-node: waiting for ") {
				continue // which a slow machine makes a warning
			}
			lower := strings.ToLower(line)
			if (strings.Contains(lower, "warn") || strings.Contains(lower, "error")) && !strings.HasPrefix(line, lamWarnsOfNone) {
				t.Errorf("%s: %s", party, line)
			}
		}
		said.WriteString(e.Text)
	}
	for _, s := range j.Sites {
		ranks += s.Procs
	}
	times := map[string]int{}
	for _, test := range tests {
		times[test] += ranks
	}
	for test, want := range times {
		if n := strings.Count(said.String(), "exchange: "+test+": rank "); n != want {
			t.Errorf("%s was passed %d times by one of %d ranks, want %d times", test, n, ranks, want)
		}
	}
	if n := strings.Count(said.String(), ": finalized\n"); n != ranks {
		t.Errorf("%d of %d ranks finalized", n, ranks)
	}
	if t.Failed() {
		tell(t, ended)
	}
}

// tell logs the output of all sites.
func tell(t *testing.T, ended map[string]Ended) {
	t.Helper()
	for party, e := range ended {
		t.Logf("%s (%v):\n%s", party, e.Err, e.Text)
	}
}

// shape is who is where in a job.
type shape struct {
	name  string
	sites []Site
}

// shapes are two sites in both orders, with one and several procs each, and three.
var shapes = []shape{
	{"LAM as client 1", []Site{{Procs: 2}, {LAM: true, Procs: 2}}},
	{"LAM as client 0", []Site{{LAM: true, Procs: 2}, {Procs: 2}}},
	{"LAM as client 1, one proc each", []Site{{Procs: 1}, {LAM: true, Procs: 1}}},
	{"LAM as client 0, one proc each", []Site{{LAM: true, Procs: 1}, {Procs: 1}}},
	{"LAM as client 1, 1 and 3 procs", []Site{{Procs: 1}, {LAM: true, Procs: 3}}},
	{"LAM as client 0, 1 and 3 procs", []Site{{LAM: true, Procs: 1}, {Procs: 3}}},
	{"LAM as clients 1 and 2", []Site{{Procs: 2}, {LAM: true, Procs: 1}, {LAM: true, Procs: 2}}},
	{"LAM as clients 0 and 2", []Site{{LAM: true, Procs: 2}, {Procs: 1}, {LAM: true, Procs: 1}}},
	{"LAM as client 1 between ours", []Site{{Procs: 1}, {LAM: true, Procs: 2}, {Procs: 2}}},
}

// ranks returns the ranks at the sites of LAM, or at those of ours.
func (s shape) ranks(lam bool) (ranks []int) {
	first := 0
	for _, site := range s.sites {
		for i := range site.Procs {
			if site.LAM == lam {
				ranks = append(ranks, first+i)
			}
		}
		first += site.Procs
	}
	return ranks
}

// numbers appends numbers to the name of a test.
func numbers(test string, n ...int) string {
	for _, x := range n {
		test += " " + strconv.Itoa(x)
	}
	return test
}
