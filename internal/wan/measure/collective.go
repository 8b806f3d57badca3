package measure

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/wan/area"
)

// Across names the measurement of collective operations, in milliseconds.
const Across = "collectives"

// pollingProcs is how many procs of other MPIs a core may have. They wait by polling, and more of
// them measure the scheduler.
const pollingProcs = 8

// procsEach is how many procs a site has where collective operations are measured.
const procsEach = 4

// CollectiveCell is the time of one operation, or the reason why there is none.
type CollectiveCell struct {
	RTT       time.Duration `json:"rtt_ns"`
	Sites     int           `json:"sites"`
	Operation string        `json:"operation"`
	Bytes     int           `json:"bytes"` // bytes of the vector, or of each block
	Column    string        `json:"column"`
	Value     float64       `json:"value,omitempty"` // ms
	Why       string        `json:"why,omitempty"`
}

// measured lists the operations that are measured, with their lengths. Those with a block for each
// pair of procs have shorter ones.
var measured = []struct {
	name    string
	lengths []int
	pays    func(bytes int) int // returns the bytes that have to cross the line between two sites
}{
	{"barrier", []int{0}, func(int) int { return 0 }},
	{"bcast", []int{8, 4 << 10, 256 << 10}, func(n int) int { return n }},
	{"allreduce", []int{8, 4 << 10, 256 << 10}, func(n int) int { return n }},
	{"allgather", []int{8, 4 << 10, 64 << 10}, func(n int) int { return procsEach * n }},
	{"alltoall", []int{8, 4 << 10, 64 << 10}, func(n int) int { return procsEach * procsEach * n }},
	{"iallreduce", []int{16}, func(int) int { return 0 }},
}

// Bound returns the minimum time of an operation, in milliseconds: each proc depends on data that
// all others, or the root, had when they began, which takes one way between sites, half a round
// trip; and on the bytes of these data, each of which has to leave by the line between two sites.
func (r *Report) Bound(c CollectiveCell) float64 {
	for _, m := range measured {
		if m.name == "iallreduce" && m.name == c.Operation {
			return computing * float64(c.RTT) / 1e6
		}
		if m.name == c.Operation {
			return float64(c.RTT)/2e6 + float64(m.pays(c.Bytes))*8e3/float64(r.Rate)
		}
	}
	return 0
}

// computing is how long the program computes beside a nonblocking operation, in round trips. That
// operation reduces complex products, which one site computes, so that it takes one round trip.
const computing = 1.5

// starter returns commands that run the program collective.
type starter func(ctx context.Context, o *Options, a *area.Area, dir string, arguments []string) ([]*exec.Cmd, error)

// acrossColumns are those of which collective operations are measured, in the order of the table.
var acrossColumns = []struct {
	name  string
	start starter
	polls bool
}{
	{"impi collectives", func(ctx context.Context, o *Options, a *area.Area, dir string, arguments []string) ([]*exec.Cmd, error) {
		return o.job(ctx, a, dir, "tcp", []string{"streams = 1"}, procsEach, append([]string{filepath.Join(o.Bin, "wan-collective")}, arguments...))
	}, false},
	{"MPICH collectives", other(mpich).procs, true},
	{"Open MPI collectives", other(openMPI).procs, true},
}

func (start other) procs(ctx context.Context, _ *Options, a *area.Area, dir string, arguments []string) ([]*exec.Cmd, error) {
	cmd, err := start(ctx, a, dir, "collective", procsEach, arguments)
	return []*exec.Cmd{cmd}, err
}

func (o *Options) collectives(ctx context.Context, rtt time.Duration, sites int, name string, start starter) (cells []CollectiveCell, err error) {
	b := &stand{}
	defer b.close()
	dir, a, err := b.make(o, Row{RTT: rtt}, sites)
	if err != nil {
		return nil, err
	}
	// Other MPIs need as many round trips as a tree is deep to agree when they begin.
	pause := 5 * rtt
	arguments := []string{seconds(pause), strconv.Itoa(o.Repeats)}
	for _, m := range measured {
		for _, n := range m.lengths {
			what := fmt.Sprintf("%s:%d", m.name, n)
			if !o.Operations.MatchString(what) {
				continue
			}
			arguments = append(arguments, what)
			cells = append(cells, CollectiveCell{RTT: rtt, Sites: sites, Operation: m.name, Bytes: n, Column: name})
		}
	}
	limited, cancel := context.WithTimeout(ctx, o.Limit+time.Duration(len(cells)*(o.Repeats+4))*4*pause)
	defer cancel()
	var printed string
	commands, err := start(limited, o, a, dir, arguments)
	if err == nil {
		printed, err = await(limited, a, regexp.MustCompile(`collective: end`), commands...)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i := range cells {
		c := &cells[i]
		m := regexp.MustCompile(fmt.Sprintf(`collective: %s %d ([0-9.e+-]+) ms`, c.Operation, c.Bytes)).FindStringSubmatch(printed)
		switch {
		case m != nil:
			c.Value, err = strconv.ParseFloat(m[1], 64)
		case err == nil:
			err = fmt.Errorf("the program printed no figure")
		}
		if err != nil {
			c.Value, c.Why = 0, err.Error()
		}
		fmt.Fprintf(o.Log, "RTT %v, %d sites, %s, %s of %d bytes: %.2f ms%s\n", rtt, sites, name, c.Operation, c.Bytes, c.Value, c.Why)
	}
	return cells, nil
}

func (o *Options) across(ctx context.Context, r *Report) error {
	for _, sites := range o.Sites {
		for _, c := range acrossColumns {
			if !slices.Contains(o.Columns, c.name) || c.polls && sites*procsEach > pollingProcs*r.Machine.Cores {
				continue
			}
			cells, err := o.collectives(ctx, o.Across, sites, c.name, c.start)
			if err != nil {
				return err
			}
			r.Collectives = append(r.Collectives, cells...)
		}
	}
	return nil
}

func (r *Report) collectiveTable(w io.Writer) {
	var names []string
	for _, c := range acrossColumns {
		if slices.ContainsFunc(r.Collectives, func(x CollectiveCell) bool { return x.Column == c.name }) {
			names = append(names, c.name)
		}
	}
	fmt.Fprintf(w, "| Sites | Operation | Bytes | Bound |")
	for _, name := range names {
		fmt.Fprintf(w, " %s | |", strings.TrimSuffix(name, " collectives"))
	}
	fmt.Fprintf(w, "\n|--:|---|--:|--:|%s\n", strings.Repeat("--:|--:|", len(names)))
	for _, first := range r.Collectives {
		if first.Column != names[0] {
			continue
		}
		bound := r.Bound(first)
		fmt.Fprintf(w, "| %d | %s | %d | %.1f |", first.Sites, first.Operation, first.Bytes, bound)
		for _, name := range names {
			i := slices.IndexFunc(r.Collectives, func(c CollectiveCell) bool {
				return c.Column == name && c.Sites == first.Sites && c.Operation == first.Operation && c.Bytes == first.Bytes
			})
			switch {
			case i < 0:
				fmt.Fprint(w, " | |")
			case r.Collectives[i].Why != "":
				fmt.Fprint(w, " none | |")
			default:
				fmt.Fprintf(w, " %.1f | %.2f |", r.Collectives[i].Value, r.Collectives[i].Value/bound)
			}
		}
		fmt.Fprintln(w)
	}
}
