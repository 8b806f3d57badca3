package measure

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

func TestPage(t *testing.T) {
	near, far := Row{time.Millisecond, 0}, Row{100 * time.Millisecond, 0.001}
	r := &Report{Rate: 1e9, Time: 5 * time.Second, Omit: time.Second, Columns: []string{"ping", "impi tcp", "MPICH"}, Cells: []Cell{
		{Row: near, Column: "ping", What: Latency, Value: 1.25},
		{Row: near, Column: "impi tcp", What: Stream, Value: 940},
		{Row: near, Column: "impi tcp", What: Latency, Value: 1.3},
		{Row: near, Column: "MPICH", What: Stream, Value: 930.04},
		{Row: far, Column: "ping", What: Latency, Value: 100.5},
		{Row: far, Column: "impi tcp", What: Stream, Value: 12.34},
		{Row: far, Column: "MPICH", What: Stream, Why: "mpiexec.mpich:\nno such file"},
	}}
	var b strings.Builder
	r.Write(&b)
	for _, want := range []string{
		"Streams are measured for 5s, after 1s.",
		"| RTT | loss | impi tcp | MPICH |\n|--:|--:|--:|--:|\n| 1ms | 0 % | 940.0 | 930.0 |\n| 100ms | 0.1 % | 12.3 | none |\n",
		"| RTT | loss | ping | impi tcp |\n|--:|--:|--:|--:|\n| 1ms | 0 % | 1.25 | 1.30 |\n| 100ms | 0.1 % | 100.50 | |\n",
		"* RTT 100ms, loss 0.1 %, MPICH, stream: mpiexec.mpich: no such file\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no\n%s\nin\n%s", want, b.String())
		}
	}
}

// TestCollectiveTable sets times beside the bound: half a round trip, and the bytes that have to
// cross a line.
func TestCollectiveTable(t *testing.T) {
	r := &Report{Rate: 1e9}
	for _, c := range []CollectiveCell{
		{Operation: "barrier", Column: "impi collectives", Value: 60},
		{Operation: "alltoall", Bytes: 64 << 10, Column: "impi collectives", Value: 174.17},
		{Operation: "alltoall", Bytes: 64 << 10, Column: "MPICH collectives", Why: "no figure"},
	} {
		c.RTT, c.Sites = 100*time.Millisecond, 2
		r.Collectives = append(r.Collectives, c)
	}
	var b strings.Builder
	r.Write(&b)
	for _, want := range []string{
		"| Sites | Operation | Bytes | Bound | impi | | MPICH | |\n|--:|---|--:|--:|--:|--:|--:|--:|\n",
		"| 2 | barrier | 0 | 50.0 | 60.0 | 1.20 | | |\n",
		"| 2 | alltoall | 65536 | 58.4 | 174.2 | 2.98 | none | |\n",
		"* 2 sites, MPICH collectives, alltoall of 65536 bytes: no figure\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "Stream") {
		t.Errorf("streams were not measured:\n%s", &b)
	}
}

// Ping and, with make soak, iperf3 and a job of ours give figures that arithmetic allows.
func TestFigures(t *testing.T) {
	skips.Programs(t, "ping", "iperf3", "ip")
	o := &Options{
		Bin: t.TempDir(), Rate: 50e6, Omit: 200 * time.Millisecond, Time: 500 * time.Millisecond, Latency: 100 * time.Millisecond,
		Limit: 2 * time.Minute, Seed: 1, Log: t.Output(),
	}
	names := []string{"ping"}
	if soak.Size(0, 1) > 0 {
		names = append(names, "iperf3", "impi tcp")
		build(t, o.Bin)
	}
	row := Row{RTT: 20 * time.Millisecond}
	if (&stand{}).missing(t, o, row) {
		return
	}
	if soak.Size(0, 1) > 0 {
		o.Repeats, o.Operations = 3, regexp.MustCompile("")
		cells, err := o.collectives(t.Context(), row.RTT, 2, "impi collectives", acrossColumns[0].start)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			if c.Why != "" || c.Value < 10 {
				t.Errorf("%s of %d bytes: %v ms %s, over 20 ms", c.Operation, c.Bytes, c.Value, c.Why)
			}
		}
	}
	for _, c := range columns {
		for _, what := range c.what {
			if !slices.Contains(names, c.name) {
				continue
			}
			cell, err := o.cell(t.Context(), row, c, what)
			if err != nil || cell.Why != "" {
				t.Fatalf("%s: %s: %v%s", c.name, what, err, cell.Why)
			}
			if v := cell.Value; what == Latency && v < 20 || what == Stream && v <= 0 {
				t.Errorf("%s: %s: %v, over 20 ms and 50 Mb/s", c.name, what, v)
			}
		}
	}
}

func build(t *testing.T, bin string) {
	t.Helper()
	skips.Program(t, "go")
	for _, args := range [][]string{{bin + "/", "./cmd/impi-node", "./cmd/impi-transport-tcp"}, {filepath.Join(bin, "wan-pair"), "./internal/wan/pair"},
		{filepath.Join(bin, "wan-collective"), "./internal/wan/collective"}} {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-trimpath", "-o"}, args...)...)
		cmd.Dir = "../../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// missing skips the test where there can be no area.
func (b *stand) missing(t *testing.T, o *Options, row Row) bool {
	defer b.close()
	_, _, err := b.make(o, row, 2)
	if err != nil {
		skips.NotRun(t, err.Error(), "run the tests as root, with iproute2 installed and /dev/net/tun")
	}
	return err != nil
}
