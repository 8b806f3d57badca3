package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// contender is one implementation in a comparison: it runs a benchmark once and
// gives a figure per size.
type contender struct {
	name string
	run  func(ctx context.Context, bench string, sizes []int) ([]figure, error)

	skips func(bench string) bool // what it cannot do; nil: it can do all
}

// result is the figures of one benchmark.
type result struct {
	Benchmark string `json:"benchmark"`
	Procs     int    `json:"procs"`
	Unit      string `json:"unit"`
	Rows      []row  `json:"rows"`
	names     []string
}

// row is the medians for one message size.
type row struct {
	Size    int                `json:"size"`
	Values  map[string]float64 `json:"values"`  // by contender
	Ratios  map[string]float64 `json:"ratios"`  // by contender: how many times better ours is
	Spreads map[string]float64 `json:"spreads"` // by contender: (max-min)/median of the repetitions
}

const ours = "impi"

// compare runs all benchmarks, with each number of procs, and prints the results.
func compare(ctx context.Context, o options, w io.Writer) error {
	var results []result
	for i, n := range o.ranks {
		o.procs = n
		if i > 0 { // of these the number of procs is given in another way
			o.benches = slices.DeleteFunc(slices.Clone(o.benches), func(name string) bool { return !benchmarks[name].ranks })
		}
		list, err := o.compareOnce(ctx, w)
		if err != nil {
			return err
		}
		results = append(results, list...)
	}
	if o.json {
		return printJSON(w, o, results)
	}
	return nil
}

// compareOnce runs all benchmarks with o.procs.
func (o options) compareOnce(ctx context.Context, w io.Writer) (results []result, err error) {
	contenders, cleanup, err := o.contenders(ctx)
	defer cleanup()
	if err != nil {
		return nil, err
	}
	for _, name := range o.benches {
		r, err := o.measure(ctx, name, contenders)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
		if !o.json {
			r.print(w)
		}
	}
	return results, nil
}

// contenders are ours first, then its variants, the floor, the peers.
func (o *options) contenders(ctx context.Context) (list []contender, cleanup func(), err error) {
	dir, err := os.MkdirTemp("", "impi-bench-")
	if err != nil {
		return nil, func() {}, err
	}
	cleanup = func() { _ = os.RemoveAll(dir) }
	own, err := o.newOwn(dir)
	if err != nil {
		return nil, cleanup, err
	}
	list = []contender{{name: ours, run: own.run}}
	for _, name := range o.beside {
		list = append(list, own.newVariant(name))
	}
	if o.floor {
		list = append(list, contender{name: "floor", run: o.runFloor, skips: func(bench string) bool { return !benchmarks[bench].floor }})
	}
	for _, name := range o.peers {
		p, err := o.newPeer(ctx, name, dir)
		if err != nil {
			return nil, cleanup, err
		}
		list = append(list, contender{name: name, run: p.run, skips: func(bench string) bool { return bench == "plugins" }})
	}
	return list, cleanup, nil
}

// measure runs one benchmark: the contenders in turn, repeated, and medians.
func (o *options) measure(ctx context.Context, name string, all []contender) (result, error) {
	b, sizes := benchmarks[name], o.sizesOf(name)
	r := result{Benchmark: name, Procs: o.procsOf(name, sizes), Unit: b.unit}
	values := map[string]map[int][]float64{}
	for rep := range o.repeat {
		for _, c := range all {
			if c.skips != nil && c.skips(name) {
				continue
			}
			if !o.quiet {
				fmt.Fprintf(os.Stderr, "\r\033[K%s: %s, repetition %d of %d", name, c.name, rep+1, o.repeat)
			}
			figures, err := o.limited(ctx, c, name, sizes)
			if errors.Is(err, errStuck) && c.name != ours && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "\r\033[Kimpi-bench: %s: %s, repetition %d is left out: %v\n", name, c.name, rep+1, err)
				continue
			}
			if err != nil {
				return r, fmt.Errorf("%s: %s: %w", name, c.name, err)
			}
			if values[c.name] == nil {
				values[c.name] = map[int][]float64{}
				r.names = append(r.names, c.name)
			}
			for _, f := range figures {
				values[c.name][f.Size] = append(values[c.name][f.Size], b.value(f))
			}
		}
	}
	if !o.quiet {
		fmt.Fprint(os.Stderr, "\r\033[K")
	}
	for _, size := range sizes {
		r.Rows = append(r.Rows, newRow(b, size, values))
	}
	return r, nil
}

// errStuck is a run that was stopped. A peer's is left out of the medians; ours
// never is.
var errStuck = errors.New("it did not end")

// limited runs a contender once, for at most o.limit: an implementation that
// spins without end on a machine with too few cores is not waited for.
func (o *options) limited(ctx context.Context, c contender, bench string, sizes []int) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	figures, err := c.run(ctx, bench, sizes)
	if ctx.Err() == context.DeadlineExceeded {
		return nil, fmt.Errorf("%w within %v (flag -limit); is the machine busy, or are there fewer cores than ranks?", errStuck, o.limit)
	}
	return figures, err
}

func newRow(b benchmark, size int, values map[string]map[int][]float64) row {
	r := row{Size: size, Values: map[string]float64{}, Ratios: map[string]float64{}, Spreads: map[string]float64{}}
	for name, bySize := range values {
		if v := bySize[size]; len(v) > 0 {
			r.Values[name] = median(v)
			r.Spreads[name] = (slices.Max(v) - slices.Min(v)) / r.Values[name]
		}
	}
	for name, v := range r.Values {
		if name != ours {
			r.Ratios[name] = b.ratio(r.Values[ours], v)
		}
	}
	return r
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
