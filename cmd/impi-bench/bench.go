package main

// benchmark is one of the loops, and how its figures are read.
type benchmark struct {
	unit   string
	axis   string // what Size counts; "": bytes
	higher bool   // is better
	sizes  []int  // usual ones
	floor  bool   // a bare socket pair can do the same
	ranks  bool   // it is about messages between ranks
	value  func(f figure) float64
}

var benchNames = []string{"pingpong", "stream", "rate", "allreduce", "start", "memory", "plugins"}

var benchmarks = map[string]benchmark{
	"pingpong": {
		unit: "us", floor: true, ranks: true, sizes: []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20},
		value: func(f figure) float64 { return f.Seconds / float64(f.Iterations) / 2 * 1e6 },
	},
	"stream": {
		unit: "MB/s", higher: true, floor: true, ranks: true, sizes: []int{4 << 10, 64 << 10, 256 << 10, 1 << 20},
		value: func(f figure) float64 { return float64(f.Size) * depth * float64(f.Iterations) / f.Seconds / 1e6 },
	},
	"rate": {
		unit: "k/s", higher: true, ranks: true, sizes: []int{8, 64, 512},
		value: func(f figure) float64 { return window * float64(f.Iterations) / f.Seconds / 1e3 },
	},
	"allreduce": {
		unit: "us", ranks: true, sizes: []int{8, 1 << 10, 32 << 10, 1 << 20},
		value: func(f figure) float64 { return f.Seconds / float64(f.Iterations) * 1e6 },
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

// procsOf is how many ranks a run of the benchmark has.
func (o *options) procsOf(bench string, sizes []int) int {
	if benchmarks[bench].ranks {
		return o.procs
	}
	return sizes[0]
}

// ratio tells how many times better ours is than theirs.
func (b benchmark) ratio(ours, theirs float64) float64 {
	if b.higher {
		return ours / theirs
	}
	return theirs / ours
}
