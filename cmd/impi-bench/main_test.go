package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports/tcp"
)

// TestMain lets the test binary be the processes that impi-bench starts of
// itself, workers and floor ends, and a vendor's plugin.
func TestMain(m *testing.M) {
	if sdk.IsPlugin() {
		sdk.Serve(sdk.Options{Transport: tcp.New()})
	}
	if len(os.Args) > 1 && (slices.Contains(childWords, os.Args[1]) || isStartupPart(os.Args[1:])) {
		os.Exit(run(os.Args[1:]))
	}
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

// built is the folder of the impi-node of this tree. All tests share it.
var built = struct {
	sync.Once
	dir string
	err error
}{}

// impiNode returns the file of the impi-node of this tree.
func impiNode(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "impi-bench-bin-"); built.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", built.dir+"/", "../impi-node").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "impi-node")
}

// parse reads a command line.
func parse(args []string) (options, error) {
	c, o := newCommand()
	_, err := c.Parse(args)
	return *o, err
}

func parsed(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestSizes(t *testing.T) {
	o := parsed(t, "-sizes", "0,8,64K,1M", "pingpong")
	if want := []int{0, 8, 64 << 10, 1 << 20}; !slices.Equal(o.sizes, want) {
		t.Errorf("got %v, want %v", o.sizes, want)
	}
	for _, bad := range []string{"x", "8,,9", "-1", "2048M", "K"} {
		if _, err := parse([]string{"-sizes", bad, "pingpong"}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-beside", "x", "rate"}, {"-beside", "in-process", "rate"}, {"-transport", "tcp", "-procs", "3", "rate"},
		{"-transport", "tcp", "-beside", "in-process", "-resume", "true", "rate"},
		{"-transport", "tcp", "-beside", "in-process", "-path", "channel", "rate"},
		{"-transport", "tcp", "-beside", "in-process", "-procs", "4", "rate"},
		{"-rounds", "0", "-transport", "tcp", "-beside", "resume", "rate"}, {}, {"dance"}, {"-peer", "lam", "pingpong"}, {"-peer", "c=/opt", "pingpong"}, {"-peer", "mpich=", "pingpong"}, {"-path", "round", "rate"}, {"-repeat", "0", "rate"}, {"-procs", "1", "allreduce"},
		{"-procs", "2,x", "allreduce"}, {"-procs", "4,5", "collectives", "rate"}, {"-transport", "tcp", "-procs", "2,4", "-beside", "in-process", "barrier"},
		{"-transport", "tcp", "-beside", "resume", "overlap"}, {"-procs", "3", "put"},
		{"-native", "-transport", "shm"}, {"-native", "-path", "channel"}, {"-native", "-beside", "resume", "rate"}, {"-native", "-peer", "c", "rate"}, {"-native", "-procs", "3"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	c, _ := newCommand()
	for _, fault := range c.Faults() {
		t.Error(fault)
	}
	for _, word := range append(slices.Clone(benchNames), "-peer", "examples:", "exit status") {
		if !strings.Contains(c.Help, word) {
			t.Errorf("help does not mention %s", word)
		}
	}
	if o := parsed(t, "all"); !slices.Equal(o.benches, benchNames) {
		t.Errorf("all is %v", o.benches)
	}
}

// A group stands for its members, once each.
func TestGroups(t *testing.T) {
	o := parsed(t, "bcast", "collectives", "pingpong")
	if want := []string{"bcast", "barrier", "reduce", "allreduce", "alltoall", "gather", "scatter", "allgather", "reduce_scatter", "comm_dup", "comm_split", "pingpong"}; !slices.Equal(o.benches, want) {
		t.Errorf("got %v", o.benches)
	}
	if o := parsed(t, "-procs", "3,4", "collectives"); !slices.Equal(o.ranks, []int{3, 4}) {
		t.Errorf("procs are %v", o.ranks)
	}
}

// A size means nothing to a barrier.
func TestSizesOf(t *testing.T) {
	o := parsed(t, "-sizes", "8,64", "collectives")
	if got := o.sizesOf("barrier"); !slices.Equal(got, []int{0}) {
		t.Errorf("barrier: %v", got)
	}
	if got := o.sizesOf("gather"); !slices.Equal(got, []int{8, 64}) {
		t.Errorf("gather: %v", got)
	}
	o = parsed(t, "gather")
	if got := o.sizesOf("gather"); !slices.Contains(got, 1<<20) {
		t.Errorf("usual sizes: %v", got)
	}
}

func TestRatiosSayHowMuchBetterOursIs(t *testing.T) {
	if r := benchmarks["pingpong"].ratio(2, 4); r != 2 {
		t.Errorf("half the latency is %vx", r)
	}
	if r := benchmarks["rate"].ratio(2, 4); r != 0.5 {
		t.Errorf("half the rate is %vx", r)
	}
}

func TestValues(t *testing.T) {
	f := figure{Size: 1000, Iterations: 10, Seconds: 1, Resident: 5e6, Overlap: 0.25}
	for name, want := range map[string]float64{
		"overlap": 25, "pingpong": 50_000, "stream": 0.16, "rate": 0.64, "allreduce": 100_000, "start": 1, "memory": 5, "plugins": 5,
	} {
		if got := benchmarks[name].value(f); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestCalibration(t *testing.T) {
	if n, final := next(8, 0.001, 0.2); n != 16 || final {
		t.Errorf("too short: %d, %v", n, final)
	}
	if n, final := next(100, 0.05, 0.2); n != 401 || !final {
		t.Errorf("long enough: %d, %v", n, final)
	}
}

// The job files that impi-bench writes are good ones.
func TestJobFiles(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"pingpong"}, {"-transport", "tcp", "start"}, {"plugins"}, {"-path", "channel", "-procs", "5", "allreduce"}} {
		o := parsed(t, args...)
		bench := o.benches[0]
		w := &own{o: &o, self: self}
		file := filepath.Join(t.TempDir(), "job.hcl")
		procs := o.procsOf(bench, []int{4})
		if err := os.WriteFile(file, []byte(w.job(bench, procs, []int{8, 64})), 0o600); err != nil {
			t.Fatal(err)
		}
		job, faults := config.Load(file, config.Options{
			Builtins: []config.Builtin{{Name: "shm"}, {Name: "unix"}, {Name: "tcp"}, {Name: "quic", NeedsBlock: true}}, Local: func(netip.Addr) bool { return true }, Environ: os.Environ(),
		})
		if faults.HasErrors() {
			t.Fatalf("%v: %v", args, faults.Err())
		}
		sum := 0
		for _, s := range job.Sites {
			sum += s.Procs()
			if s.RouteTo("x").Direct != (o.path == "direct") {
				t.Errorf("%v: direct is %v", args, s.RouteTo("x").Direct)
			}
		}
		if sum != procs {
			t.Errorf("%v: %d procs, want %d", args, sum, procs)
		}
	}
}

func TestFloor(t *testing.T) {
	for _, transport := range []string{"tcp", "unix"} {
		for _, bench := range []string{"pingpong", "stream"} {
			o := parsed(t, "-transport", transport, "-seconds", "0.001", bench)
			list, err := o.runFloor(context.Background(), bench, []int{8, 70_000})
			if err != nil || len(list) != 2 || list[0].Iterations == 0 || list[1].Size != 70_000 {
				t.Errorf("%s over %s: %+v, %v", bench, transport, list, err)
			}
		}
	}
}

// The whole command, with the impi-node of this tree.
func TestRunsUnderNode(t *testing.T) {
	node := impiNode(t)
	for _, path := range []string{"direct", "channel"} {
		if path == "channel" && !soak.Enabled() {
			break // make test has the other
		}
		o := parsed(t, "-node", node, "-seconds", "0.001", "-repeat", "1", "-sizes", "8,5000", "-path", path, "-json", "-quiet", "pingpong", "stream", "rate", "collectives", "nonblocking", "onesided")
		var out bytes.Buffer
		if err := compare(context.Background(), o, &out); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Results []result `json:"results"`
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Results) != 28 {
			t.Fatalf("%v in %s", err, out.String())
		}
		for _, r := range got.Results {
			for _, row := range r.Rows {
				if row.Values[ours] <= 0 {
					t.Errorf("%s, %s, %d bytes: %v", path, r.Benchmark, row.Size, row.Values)
				}
			}
		}
	}
}

func TestRunWithoutEnd(t *testing.T) {
	o := parsed(t, "-limit", "20ms", "pingpong")
	_, err := o.limited(context.Background(), contender{name: "stuck", run: func(ctx context.Context, _ string, _ []int) ([]figure, error) {
		return figures(exec.CommandContext(ctx, "sh", "-c", "sleep 1000 & wait"))
	}}, "pingpong", nil)
	if err == nil || !strings.Contains(err.Error(), "-limit") {
		t.Errorf("got %v", err)
	}
}

// A peer that hangs now and then costs a repetition; if we do, that is a result.
func TestStuckRepetition(t *testing.T) {
	o := parsed(t, "-limit", "10ms", "-repeat", "2", "-quiet", "-sizes", "8", "pingpong")
	runs := 0
	stuckOnce := func(ctx context.Context, _ string, _ []int) ([]figure, error) {
		if runs++; runs == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []figure{{Size: 8, Iterations: 1, Seconds: 4e-6}}, nil
	}
	r, err := o.measure(context.Background(), "pingpong", []contender{{name: "mpich", run: stuckOnce}})
	if err != nil || r.Rows[0].Values["mpich"] != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	runs = 0
	if _, err := o.measure(context.Background(), "pingpong", []contender{{name: ours, run: stuckOnce}}); !errors.Is(err, errStuck) {
		t.Errorf("ours: %v", err)
	}
}

// A peer that crashes in an operation in which they do now and then loses the repetition.
func TestCrashedRepetition(t *testing.T) {
	o := parsed(t, "-repeat", "2", "-quiet", "-sizes", "8", "-peer", "mpich", "put")
	runs, crash := 0, errors.New("exit status 139\nand a trace")
	crashOnce := func(context.Context, string, []int) ([]figure, error) {
		if runs++; runs == 1 {
			return nil, crash
		}
		return []figure{{Size: 8, Iterations: 1, Seconds: 2e-6}}, nil
	}
	r, err := o.measure(context.Background(), "put", []contender{{name: "mpich", run: crashOnce}})
	if err != nil || r.Rows[0].Values["mpich"] != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	runs = 0
	if _, err := o.measure(context.Background(), "put", []contender{{name: ours, run: crashOnce}}); !errors.Is(err, crash) {
		t.Errorf("ours: %v", err)
	}
}

// A library without dynamic processes is left out of what it cannot do, ours never.
func TestPeerThatCannot(t *testing.T) {
	o := parsed(t, "-repeat", "2", "-quiet", "-peer", "mpich,openmpi", "spawn")
	runs := map[string]int{}
	of := func(name string, err error) contender {
		return contender{name: name, run: func(context.Context, string, []int) ([]figure, error) {
			runs[name]++
			return []figure{{Size: 1, Iterations: 1, Seconds: 0.002}, {Size: 4, Iterations: 1, Seconds: 0.004}}, err
		}}
	}
	cannot := errors.New("not supported")
	r, err := o.measure(context.Background(), "spawn", []contender{of(ours, nil), of("mpich", cannot), of("openmpi", nil)})
	if err != nil || !slices.Equal(r.names, []string{ours, "openmpi"}) || runs["mpich"] != 1 || runs["openmpi"] != 2 || r.Rows[1].Values["openmpi"] != 4 {
		t.Errorf("%+v, %v, runs %v", r, err, runs)
	}
	for bench, c := range map[string]contender{"spawn": of(ours, cannot), "pingpong": of("mpich", cannot)} {
		if _, err := o.measure(context.Background(), bench, []contender{c}); !errors.Is(err, cannot) {
			t.Errorf("%s: %v", bench, err)
		}
	}
}

func TestWholePrograms(t *testing.T) {
	node := impiNode(t)
	o := parsed(t, "-node", node, "-repeat", "1", "-quiet", "-seconds", "0.01", "start", "memory", "plugins", "connect", "spawn")
	var out bytes.Buffer
	if err := compare(context.Background(), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"procs", "memory, MB", "plugins, MB", "connect, us", "spawn, ms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

// Each transport runs in the procs themselves, from the first byte to an orderly end.
func TestInside(t *testing.T) {
	for _, transport := range insideNames() {
		o := parsed(t, "-transport", transport, "-beside", insideName, "-seconds", "0.001", "pingpong")
		w := &own{o: &o, dir: t.TempDir()}
		for _, bench := range []string{"pingpong", "stream", "rate", "allreduce"} {
			list, err := w.runInside(t.Context(), bench, []int{8, 70_000})
			if err != nil || len(list) != 2 || list[0].Iterations == 0 || list[1].Size != 70_000 {
				t.Errorf("%s over %s: %+v, %v", bench, transport, list, err)
			}
		}
	}
}

// A variant differs in one thing, and what it is compared with is fixed.
func TestVariants(t *testing.T) {
	o := parsed(t, "-transport", "tcp", "-beside", "resume,ring,unix,channel,calls,lent,progress,survive,timeline,timeline-each", "-path", "direct", "pingpong")
	w := &own{o: &o, self: "self", dir: t.TempDir()}
	job := func(o options) string { return (&own{o: &o, self: "self", dir: w.dir}).job("pingpong", 2, nil) }
	base := job(o)
	if !strings.Contains(base, "resume = false") {
		t.Errorf("it is left to the node whether links are resumed: %s", base)
	}
	for name, want := range map[string]string{
		"resume": "resume = true", "ring": `data_plane = ["ring"]`, "unix": `prefer = ["unix"]`, "channel": "direct = false", "calls": "calls  = true", "lent": `"env","IMPI_BENCH_LENT=1"`, "progress": `progress = "1ms"`, "survive": "survive = true", "timeline": `short = "merge"`, eachName: `short = "each"`,
	} {
		changed := o
		variants[name](&changed)
		if got := job(changed); strings.Contains(base, want) || !strings.Contains(got, want) {
			t.Errorf("%s gives %s", name, got)
		}
	}
	if c := w.newVariant(insideName); !c.skips("memory") || c.skips("rate") {
		t.Error("what has no node has no plugins to count")
	}
}

// Pairs of ranks run at the same time.
func TestFourProcs(t *testing.T) {
	if _, err := parse([]string{"-procs", "3", "allreduce"}); err != nil {
		t.Error(err)
	}
	o := parsed(t, "-procs", "4", "pingpong")
	for bench, want := range map[string]int{"pingpong": 4, "allreduce": 4, "comm_dup": 4, "start": 7, "plugins": 7} {
		if got := o.procsOf(bench, []int{7}); got != want {
			t.Errorf("%s has %d procs, want %d", bench, got, want)
		}
	}
}

// TestStartup: a small job goes through both processes, and every client knows it.
func TestStartup(t *testing.T) {
	c, o := newStartup()
	_, err := c.Parse([]string{"-clients", "4", "-hosts", "2", "-procs", "2048", "-repeat", "2", "-json"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := benchStartup(t.Context(), *o, &out); err != nil {
		t.Fatal(err)
	}
	var r struct {
		Medians startupFigures
		Runs    []startupFigures
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Runs) != 2 {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// P_IPV6 and P_PID alone are 24 bytes for each proc, once up and four times down.
	m := r.Medians
	if m.Up < 24*2048 || m.Up > 26*2048 || m.Down < 4*24*2048 || m.Down > 4*26*2048 || m.Server <= 0 || m.Everything <= m.Server {
		t.Errorf("%+v", m)
	}
}

func TestStartupUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-clients 33":           "-clients 33: a job has 1 to 32",
		"-procs 7":              "-procs 7: write 32 to 1048576",
		"-procs 33":             "-procs 33: write a multiple of 32",
		"-procs 2097152":        "-procs 2097152",
		"-repeat 0":             "-repeat and -limit must be positive",
		"-clients 2 -procs 4 x": `"x": this command takes only flags`,
	} {
		if _, err := startupCommand().Parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	if c := startupCommand(); !strings.Contains(c.Help, "-clients") || !strings.Contains(c.Help, "examples:") {
		t.Error(c.Help)
	}
}
