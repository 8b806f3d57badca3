package main

import "slices"

// benchmark is one of the loops, and how to interpret its figures.
type benchmark struct {
	unit     string
	axis     string // what Size counts; "": bytes
	higher   bool   // is better
	sizes    []int  // usual ones
	fixed    bool   // there are no other sizes
	floor    bool   // a bare socket pair can do the same
	ranks    bool   // it is about messages between ranks
	pairs    bool   // which are pairs
	optional bool   // not every library can do it
	value    func(f figure) float64
}

var collectiveNames = []string{"barrier", "bcast", "reduce", "allreduce", "alltoall", "gather", "scatter", "allgather", "comm_dup", "comm_split"}

var benchNames = slices.Concat([]string{"pingpong", "stream", "rate"}, collectiveNames, []string{"connect", "spawn", "start", "memory", "plugins"})

var benchmarks = map[string]benchmark{
	"pingpong": {
		unit: "us", floor: true, ranks: true, pairs: true, sizes: []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20},
		value: func(f figure) float64 { return f.Seconds / float64(f.Iterations) / 2 * 1e6 },
	},
	"stream": {
		unit: "MB/s", higher: true, floor: true, ranks: true, pairs: true, sizes: []int{4 << 10, 64 << 10, 256 << 10, 1 << 20},
		value: func(f figure) float64 { return float64(f.Size) * depth * float64(f.Iterations) / f.Seconds / 1e6 },
	},
	"rate": {
		unit: "k/s", higher: true, ranks: true, pairs: true, sizes: []int{8, 64, 512},
		value: func(f figure) float64 { return window * float64(f.Iterations) / f.Seconds / 1e3 },
	},
	"barrier":    collectiveAlone,
	"bcast":      collectiveSized,
	"reduce":     collectiveSized,
	"allreduce":  collectiveSized,
	"alltoall":   collectiveSized,
	"gather":     collectiveSized,
	"scatter":    collectiveSized,
	"allgather":  collectiveSized,
	"comm_dup":   collectiveAlone,
	"comm_split": collectiveAlone,
	"connect":    {unit: "us", ranks: true, sizes: []int{0}, fixed: true, optional: true, value: eachTakes},
	"spawn": {
		unit: "ms", axis: "procs", ranks: true, sizes: []int{1, 4}, fixed: true, optional: true,
		value: func(f figure) float64 { return eachTakes(f) / 1e3 },
	},
	"start": {
		unit: "s", axis: "procs", sizes: []int{4},
		value: func(f figure) float64 { return f.Seconds },
	},
	"memory": {
		unit: "MB", axis: "procs", sizes: []int{4},
		value: func(f figure) float64 { return float64(f.Resident) / 1e6 },
	},
	"plugins": {
		unit: "MB", axis: "procs", sizes: []int{4},
		value: func(f figure) float64 { return float64(f.Resident) / 1e6 },
	},
}

// The collective operations with data, and those without.
var (
	collectiveSized = benchmark{unit: "us", ranks: true, sizes: []int{8, 1 << 10, 32 << 10, 1 << 20}, value: eachTakes}
	collectiveAlone = benchmark{unit: "us", ranks: true, sizes: []int{0}, fixed: true, value: eachTakes}
)

// eachTakes returns the microseconds of one iteration.
func eachTakes(f figure) float64 { return f.Seconds / float64(f.Iterations) * 1e6 }

// sizesOf returns the sizes with which a benchmark is measured.
func (o *options) sizesOf(bench string) []int {
	if b := benchmarks[bench]; len(o.sizes) == 0 || b.fixed {
		return b.sizes
	}
	return o.sizes
}

// procsOf returns how many ranks a run of the benchmark has.
func (o *options) procsOf(bench string, sizes []int) int {
	if benchmarks[bench].ranks {
		return o.procs
	}
	return sizes[0]
}

// ratio returns how many times better ours is than theirs.
func (b benchmark) ratio(ours, theirs float64) float64 {
	if b.higher {
		return ours / theirs
	}
	return theirs / ours
}
