// Package measure measures a pair of procs of two sites over an emulated wide area: our transports
// beside iperf3 and other MPIs, for round trips and losses.
package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/performance"
	"github.com/openimpi/impi/internal/provenance"
	"github.com/openimpi/impi/internal/wan"
	"github.com/openimpi/impi/internal/wan/area"
)

// Options say what is measured. Those of no value have none.
type Options struct {
	Bin        string          // folder of our programs, and of wan-pair
	Rate       int64           // bits per second of each line
	RTT        []time.Duration // round trips, without queue and transmission
	Loss       []float64       // loss of each line
	Columns    []string        // names of what is measured, see Columns
	Omit       time.Duration   // start of a stream that is not measured
	Time       time.Duration   // time for which a stream is measured
	Latency    time.Duration   // time for which round trips are measured
	Limit      time.Duration   // maximum additional time of one job
	Across     time.Duration   // round trip between sites whose procs do collective operations
	Sites      []int           // numbers of sites that do collective operations
	Operations *regexp.Regexp  // operations, as the program collective names them: "bcast:4096"
	Repeats    int             // number of measurements of each operation
	Buffers    int             // maximum bytes of a TCP buffer at the sites; 0: the kernel's
	Progress   string          // progress setting of our jobs, as in a wait block; empty: none
	Compress   string          // content of the compress block of our jobs' routes; empty: no block
	Data       string          // data of the streams of our jobs, as the program pair names it; empty: zeros
	Times      int             // measurements of a stream, of which the median counts; 0: one
	Sysctl     []string        // settings of the sites: "net.ipv4.tcp_slow_start_after_idle=0"
	Seed       uint64
	Log        io.Writer
	// Settings are the settings of our transports by the transports' names, each as in a job file:
	// "window = 65536".
	Settings map[string][]string
}

// The measurements.
const (
	Stream  = "stream"  // Mb/s
	Latency = "latency" // ms
)

// Cell is one measured value, or the reason why there is none.
type Cell struct {
	Row
	Column string    `json:"column"`
	What   string    `json:"what"`
	Value  float64   `json:"value,omitempty"` // Mb/s or ms
	All    []float64 `json:"all,omitempty"`   // measurements of which Value is the median
	Why    string    `json:"why,omitempty"`
}

// Row is the network of a row of the tables.
type Row struct {
	RTT  time.Duration `json:"rtt_ns"`
	Loss float64       `json:"loss"`
}

// Report is the result of all measurements, and where they were made.
type Report struct {
	Made     provenance.Stamp    `json:"made"`
	Machine  performance.Machine `json:"machine"`
	Rate     int64               `json:"rate"`
	MTU      int                 `json:"mtu"`
	Omit     time.Duration       `json:"omit_ns"`
	Time     time.Duration       `json:"time_ns"`
	Buffers  int                 `json:"buffers,omitempty"`
	Seed     uint64              `json:"seed"`
	Columns  []string            `json:"columns"`
	Settings map[string][]string `json:"settings,omitempty"`
	Sysctl   []string            `json:"sysctl,omitempty"`
	Progress string              `json:"progress,omitempty"`
	Compress string              `json:"compress,omitempty"`
	Data     string              `json:"data,omitempty"`
	Times    int                 `json:"times,omitempty"`
	Cells    []Cell              `json:"cells,omitempty"`

	Collectives []CollectiveCell `json:"collectives,omitempty"`
}

// contender measures one thing in an area of two sites.
type contender func(ctx context.Context, m *Options, a *area.Area, dir, what string) (float64, error)

// column is a contender with its name. Some measure only one of the two.
type column struct {
	name string
	run  contender
	what []string
}

var both = []string{Stream, Latency}

// columns are all contenders, in the order of the tables.
var columns = []column{
	{"ping", ping, []string{Latency}},
	{"iperf3", iperf(1), []string{Stream}},
	{"iperf3 x 8", iperf(8), []string{Stream}},
	{"impi tcp", ours("tcp", "streams = 1"), both},
	{"impi tcp x 8", ours("tcp"), []string{Stream}}, // up to 8 is the default
	{"impi quic", ours("quic", "streams = 1"), both},
	{"impi quic x 8", ours("quic"), []string{Stream}},
	{"MPICH", other(mpich).pair, both},
	{"Open MPI", other(openMPI).pair, both},
}

// Columns returns the names of the columns, in their order, by which Options choose some.
func Columns() (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	for _, c := range acrossColumns {
		names = append(names, c.name)
	}
	return names
}

var errNoArea = errors.New("there can be no wide area here")

// Run measures all cells. It fails only where there can be no network; a cell that fails has the
// reason.
func (o *Options) Run(ctx context.Context) (*Report, error) {
	r := &Report{Machine: performance.ThisMachine(), Rate: o.Rate, MTU: 1500, Omit: o.Omit, Time: o.Time, Buffers: o.Buffers, Seed: o.Seed, Columns: o.Columns, Settings: o.Settings, Sysctl: o.Sysctl, Progress: o.Progress, Compress: o.Compress, Data: o.Data, Times: o.Times}
	made, err := provenance.Now(".")
	if err != nil {
		return nil, err
	}
	r.Made = made
	for _, rtt := range o.RTT {
		for _, loss := range o.Loss {
			for _, name := range o.Columns {
				for _, c := range columns {
					if c.name != name {
						continue
					}
					for _, what := range c.what {
						cell, err := o.median(ctx, Row{rtt, loss}, c, what)
						if err != nil {
							return nil, err
						}
						r.Cells = append(r.Cells, cell)
					}
				}
			}
		}
	}
	return r, o.across(ctx, r)
}

// Shape returns the shape of both lines of a row. The queue holds the bytes that are under way in a
// round trip, and at least 256 KiB.
func (o *Options) Shape(r Row) wan.Shape {
	s := wan.Shape{Rate: o.Rate, Delay: r.RTT / 2, Loss: r.Loss}
	s.Queue = max(256<<10, s.BandwidthDelay())
	return s
}

// median measures one cell as often as it should be. One that fails is not measured again.
func (o *Options) median(ctx context.Context, row Row, c column, what string) (cell Cell, err error) {
	times := 1
	if what == Stream {
		times = max(1, o.Times)
	}
	var all []float64
	for len(all) < times {
		if cell, err = o.cell(ctx, row, c, what); err != nil || cell.Why != "" {
			return cell, err
		}
		all = append(all, cell.Value)
	}
	if times > 1 {
		cell.All = slices.Sorted(slices.Values(all))
		cell.Value = cell.All[times/2]
	}
	return cell, nil
}

// cell measures one cell in an area of its own, so that nothing is left of the one before it.
func (o *Options) cell(ctx context.Context, row Row, c column, what string) (Cell, error) {
	cell := Cell{Row: row, Column: c.name, What: what}
	b := &stand{}
	defer b.close()
	dir, a, err := b.make(o, row, 2)
	if err != nil {
		return cell, err
	}
	limited, cancel := context.WithTimeout(ctx, o.Limit+o.Omit+o.Time)
	defer cancel()
	cell.Value, err = c.run(limited, o, a, dir, what)
	if ctx.Err() != nil {
		return cell, context.Cause(ctx)
	}
	if err != nil {
		cell.Value, cell.Why = 0, err.Error()
	}
	there, back := a.Counts(0, 1, 0), a.Counts(1, 0, 0)
	fmt.Fprintf(o.Log, "RTT %v, loss %v, %s, %s: %s (of %d packets %d lost, %d dropped; back %d)\n",
		row.RTT, percent(row.Loss), c.name, what, cell.text(), there.Offered, there.Lost, there.Dropped, back.Offered)
	return cell, nil
}

func (c Cell) text() string {
	switch {
	case c.Why != "":
		return c.Why
	case c.What == Latency:
		return fmt.Sprintf("%.2f ms", c.Value)
	}
	return fmt.Sprintf("%.1f Mb/s", c.Value)
}

func percent(p float64) string { return fmt.Sprintf("%g %%", p*100) }
