package main

import "slices"

type benchmark struct {
	unit     string
	axis     string // what Size counts; "": bytes
	higher   bool   // higher values are better
	sizes    []int  // default sizes
	fixed    bool   // only sizes are allowed
	floor    bool   // can be measured on a bare socket pair too
	ranks    bool   // measures messages between ranks
	pairs    bool   // the ranks work in pairs
	optional bool   // some libraries cannot run it
	frail    bool   // other libraries sometimes crash in it, which loses the repetition
	whole    bool   // has its own measurement, which does not take turns
	value    func(f figure) float64
}

// The groups of benchmarks.
var (
	collectiveNames  = []string{"barrier", "bcast", "reduce", "allreduce", "alltoall", "gather", "scatter", "allgather", "reduce_scatter", "comm_dup", "comm_split"}
	nonblockingNames = []string{"ibarrier", "ibcast", "ireduce", "iallreduce", "ialltoall", "iallgather", "overlap"}
	onesidedNames    = []string{"put", "get", "accumulate", "fetch_and_op", "compare_and_swap", "fence", "win_create"}
)

var benchNames = slices.Concat([]string{"pingpong", "stream", "rate"}, collectiveNames, nonblockingNames, onesidedNames, []string{"connect", "spawn", "start", "memory", "plugins"})

var groups = map[string][]string{"all": benchNames, "collectives": collectiveNames, "nonblocking": nonblockingNames, "onesided": onesidedNames}

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
	"barrier":        collectiveAlone,
	"bcast":          collectiveSized,
	"reduce":         collectiveSized,
	"allreduce":      collectiveSized,
	"alltoall":       collectiveSized,
	"gather":         collectiveSized,
	"scatter":        collectiveSized,
	"allgather":      collectiveSized,
	"reduce_scatter": collectiveSized,
	"comm_dup":       collectiveAlone,
	"comm_split":     collectiveAlone,
	"ibarrier":       collectiveAlone,
	"ibcast":         collectiveSized,
	"ireduce":        collectiveSized,
	"iallreduce":     collectiveSized,
	"ialltoall":      collectiveSized,
	"iallgather":     collectiveSized,
	"overlap": {
		unit: "%", higher: true, ranks: true, whole: true, sizes: []int{1 << 10, 32 << 10, 1 << 20},
		value: func(f figure) float64 { return max(1, 100*f.Overlap) }, // at least 1: there is no ratio to 0
	},
	"put":              onesidedSized,
	"get":              onesidedSized,
	"accumulate":       onesidedSized,
	"fetch_and_op":     onesidedNumber,
	"compare_and_swap": onesidedNumber,
	"fence":            {unit: "us", frail: true, ranks: true, pairs: true, sizes: []int{8, 32 << 10}, value: eachTakes},
	"win_create":       {unit: "us", frail: true, ranks: true, sizes: []int{0}, fixed: true, value: eachTakes},
	"connect":          {unit: "us", ranks: true, sizes: []int{0}, fixed: true, optional: true, value: eachTakes},
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

// Benchmarks of collective operations with data and without, and of one-sided operations with data
// and of one number.
var (
	onesidedSized   = benchmark{unit: "us", frail: true, ranks: true, pairs: true, sizes: []int{8, 512, 4 << 10, 16 << 10, 256 << 10}, value: eachTakes}
	onesidedNumber  = benchmark{unit: "us", frail: true, ranks: true, pairs: true, sizes: []int{8}, fixed: true, value: eachTakes}
	collectiveSized = benchmark{unit: "us", ranks: true, sizes: []int{8, 1 << 10, 32 << 10, 1 << 20}, value: eachTakes}
	collectiveAlone = benchmark{unit: "us", ranks: true, sizes: []int{0}, fixed: true, value: eachTakes}
)

// eachTakes returns the microseconds of one iteration.
func eachTakes(f figure) float64 { return f.Seconds / float64(f.Iterations) * 1e6 }

func (o *options) sizesOf(bench string) []int {
	if b := benchmarks[bench]; len(o.sizes) == 0 || b.fixed {
		if sizes := siteSizes[bench]; o.ofSite() && sizes != nil {
			return sizes
		}
		return b.sizes
	}
	return o.sizes
}

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
