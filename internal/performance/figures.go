package performance

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/openimpi/impi/internal/provenance"
)

// Answer is the result of a run of impi-bench, with its time and machine.
type Answer struct {
	Question string           `json:"question"` // the question's name
	Made     provenance.Stamp `json:"made"`
	Machine  Machine          `json:"machine"`
	Command  []string         `json:"command"`
	Figures  Figures          `json:"figures"`
}

// Machine describes the machine on which the figures depend.
type Machine struct {
	CPU    string   `json:"cpu"`
	Cores  int      `json:"cores"`
	Memory string   `json:"memory"`
	Kernel string   `json:"kernel"`
	Go     string   `json:"go"`
	Peers  []string `json:"peers,omitempty"` // with their versions
	Load   string   `json:"load"`            // before the run, per minute
}

// Figures is the output of impi-bench -json, as far as a page needs it.
type Figures struct {
	Repeat  int      `json:"repeat"`
	Results []Result `json:"results,omitempty"`

	// Of impi-bench startup, which has no columns.
	Procs   int                `json:"procs,omitempty"`
	Medians map[string]float64 `json:"medians,omitempty"`
	Spreads map[string]float64 `json:"spreads,omitempty"`
}

// Result is the figures of one benchmark.
type Result struct {
	Benchmark string `json:"benchmark"`
	Procs     int    `json:"procs"`
	Unit      string `json:"unit"`
	Rows      []Row  `json:"rows"`
}

// Row is the medians for one size, by column.
type Row struct {
	Size      int                   `json:"size"`
	Values    map[string]float64    `json:"values"`
	Ratios    map[string]float64    `json:"ratios"`
	Spreads   map[string]float64    `json:"spreads"`
	Intervals map[string][2]float64 `json:"intervals,omitempty"`
}

// Parse reads what impi-bench -json has printed.
func Parse(b []byte) (f Figures, err error) {
	var many struct {
		Figures
		Procs any `json:"procs"` // a list, except for startup
	}
	if err := json.Unmarshal(b, &many); err != nil {
		return f, fmt.Errorf("the figures of impi-bench: %w", err)
	}
	f = many.Figures
	if n, ok := many.Procs.(float64); ok {
		f.Procs = int(n)
	}
	if len(f.Results) == 0 && len(f.Medians) == 0 {
		return f, fmt.Errorf("impi-bench gave no figures: %.100q", b)
	}
	return f, nil
}

var startup = []struct {
	key, name, unit string
	of              float64
}{
	{"seconds", "all clients know the job after", "s", 1},
	{"server_peak_rss", "peak memory of the server", "MB", 1e6},
	{"peak_rss", "the same of server and clients", "MB", 1e6},
	{"bytes_to_server", "to the server", "MB", 1e6},
	{"bytes_from_server", "from the server", "MB", 1e6},
}

func (f *Figures) results() []Result {
	list := f.Results
	for _, m := range startup {
		if v, ok := f.Medians[m.key]; ok {
			list = append(list, Result{Benchmark: m.name, Unit: m.unit, Rows: []Row{{
				Values: map[string]float64{inGo: v / m.of}, Spreads: map[string]float64{inGo: f.Spreads[m.key]},
			}}})
		}
	}
	return list
}

// higher reports whether more of a unit is better.
func (r Result) higher() bool { return slices.Contains([]string{"MB/s", "k/s", "%"}, r.Unit) }

// ratio returns how many times better a column is than another; false if one of them is
// missing.
func (r Result) ratio(row Row, column, than string) (float64, bool) {
	a, b := row.Values[column], row.Values[than]
	switch {
	case a == 0 || b == 0:
		return 0, false
	case r.higher():
		return a / b, true
	}
	return b / a, true
}

// beside returns a column's ratio to the best of some others, which is the smallest one.
func (r Result) beside(row Row, column string, others []string) (least float64, ok bool) {
	for _, o := range others {
		if x, there := r.ratio(row, column, o); there && (!ok || x < least) {
			least, ok = x, true
		}
	}
	return least, ok
}

// columns lists those that have values, ours first and peers last.
func (a *Answer) columns() (list []string) {
	known := []string{inGo, inC, "impi by salloc", "impi by srun", "in-process", "resume", "ring", "stream", "grpc", "unix", "channel", "floor", "mpich", "mpich by srun", "openmpi"}
	for _, name := range known {
		for _, r := range a.Figures.results() {
			if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Values[name] != 0 }) {
				list = append(list, name)
				break
			}
		}
	}
	return list
}
