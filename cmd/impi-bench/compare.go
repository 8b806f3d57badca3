package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
)

type contender struct {
	name string
	run  measurement

	begin func(ctx context.Context, bench string, sizes []int) (*session, error) // nil: it cannot take turns

	skips func(bench string) bool // reports benchmarks that it cannot run; nil: none
}

type measurement = func(ctx context.Context, bench string, sizes []int) ([]figure, error)

type result struct {
	Benchmark string `json:"benchmark"`
	Procs     int    `json:"procs"`
	Unit      string `json:"unit"`
	Axis      string `json:"axis,omitempty"` // what a row's size counts; empty: bytes
	Base      string `json:"base,omitempty"` // ratios tell how much better each contender is than this one; empty: how much better ours is than each
	Rows      []row  `json:"rows"`
	names     []string
}

const ours = "impi"

func compare(ctx context.Context, o options, w io.Writer) error {
	var results []result
	if len(o.on) > 0 {
		results, err := o.compareTestbeds(ctx, w)
		if err == nil && o.json {
			err = printJSON(w, o, results)
		}
		return err
	}
	if o.ofSite() {
		o.oversubscribed(runtime.NumCPU())
	}
	for i, n := range o.ranks {
		o.procs = n
		if i > 0 { // other benchmarks do not depend on -procs: measured once
			o.benches = slices.DeleteFunc(slices.Clone(o.benches), func(name string) bool { return !benchmarks[name].ranks || o.ofSite() && benchmarks[name].pairs })
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

// contenders returns impi first, then its variants, the floor, and the peers.
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
	if o.machines != nil {
		o.machines.dir = dir
		list, err = o.machines.contenders(ctx, o, own)
		return list, cleanup, err
	}
	if o.ofSite() {
		list, err = o.siteContenders(ctx, own)
		return list, cleanup, err
	}
	list = []contender{own.contender(ours)}
	for _, name := range o.beside {
		list = append(list, own.newVariant(name))
	}
	if o.floor {
		list = append(list, contender{name: "floor", run: o.runFloor, skips: func(bench string) bool { return !benchmarks[bench].floor }})
	}
	if o.vendor.library != "" {
		list = append(list, o.libraryContender())
	}
	for _, word := range o.peers {
		name, _, _ := strings.Cut(word, "=")
		c := contender{name: name, skips: func(bench string) bool { return bench == "plugins" }}
		if name == cName {
			p, err := own.newCProgram(ctx)
			if err != nil {
				return nil, cleanup, err
			}
			c.name, c.run = "impi in C", p.run
		} else {
			p, err := o.newPeer(ctx, word, dir)
			if err != nil {
				return nil, cleanup, err
			}
			c.run = p.run
			if o.native {
				n, err := own.newNative(ctx, p, preferNative)
				if err != nil {
					return nil, cleanup, err
				}
				list = append(list, contender{name: "impi on " + name, run: n.run, skips: func(bench string) bool { return !benchmarks[bench].ranks }})
			}
		}
		list = append(list, c)
	}
	return list, cleanup, nil
}

func (o *options) hasPeer(name string) bool {
	return name != "" && name == o.base || slices.ContainsFunc(o.peers, func(word string) bool { peer, _, _ := strings.Cut(word, "="); return peer == name })
}

// measure runs one benchmark: the contenders in turn, repeatedly, and takes medians.
func (o *options) measure(ctx context.Context, name string, all []contender) (result, error) {
	b, sizes := benchmarks[name], o.sizesOf(name)
	r := result{Benchmark: name, Procs: o.procsOf(name, sizes), Unit: b.unit, Axis: b.axis}
	if o.machines != nil {
		sizes, r.Axis, r.Procs = o.machines.counts, "machines", o.machines.procs()
		if o.machines.way != "" {
			r.Benchmark = name + " by " + o.machines.way
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(c contender) bool { return c.skips != nil && c.skips(name) })
	together, alone := o.split(name, slices.Clone(all))
	t := newTally(b)
	r.Base, t.base = o.base, o.base
	for rep := range o.repeat {
		if len(together) > 0 {
			o.progress("%s: %d take turns, repetition %d of %d", name, len(together), rep+1, o.repeat)
			if err := o.takeTurns(ctx, name, sizes, together, t); err != nil {
				return r, fmt.Errorf("%s: %w", name, err)
			}
		}
		rand.Shuffle(len(alone), func(i, j int) { // so that none always runs after the one that leaves most to clean up
			alone[i], alone[j] = alone[j], alone[i]
		})
		for i := 0; i < len(alone); i++ {
			c := alone[i]
			o.progress("%s: %s, repetition %d of %d", name, c.name, rep+1, o.repeat)
			figures, err := o.limited(ctx, c, name, sizes)
			costs := errors.Is(err, errStuck) && c.name != ours || err != nil && b.frail && o.hasPeer(c.name)
			if costs && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "\r\033[Kimpi-bench: %s: %s, repetition %d is left out: %v\n", name, c.name, rep+1, firstLine(err))
				continue
			}
			if err != nil && b.optional && o.hasPeer(c.name) && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "\r\033[Kimpi-bench: %s: without %s, which cannot do that here: %v\n", name, c.name, err)
				alone = slices.Delete(alone, i, i+1)
				i--
				continue
			}
			if err != nil {
				return r, fmt.Errorf("%s: %s: %w", name, c.name, err)
			}
			for _, f := range figures {
				t.add(c.name, f.Size, b.value(f))
			}
		}
	}
	o.progress("")
	for _, c := range all {
		if t.values[c.name] != nil {
			r.names = append(r.names, c.name)
		}
	}
	for _, size := range sizes {
		r.Rows = append(r.Rows, t.row(size))
	}
	return r, nil
}

// firstLine cuts an error's text to one line: that of a crash may have many.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (o *options) progress(format string, args ...any) {
	if !o.quiet {
		fmt.Fprintf(os.Stderr, "\r\033[K"+format, args...)
	}
}

// split returns which contenders take turns, ours first, and which run one after the other.
func (o *options) split(bench string, all []contender) (together, alone []contender) {
	for _, c := range all {
		if c.begin != nil && o.rounds > 1 && benchmarks[bench].ranks {
			together = append(together, c)
		} else {
			alone = append(alone, c)
		}
	}
	if len(together) < 2 {
		return nil, all
	}
	return together, alone
}

// errStuck is the error of a run that was stopped. A peer's is left out of the medians; for
// impi it is an error.
var errStuck = errors.New("it did not end")

// limited runs a contender once, for at most o.limit, because an implementation that spins
// may never end on a machine with too few cores.
func (o *options) limited(ctx context.Context, c contender, bench string, sizes []int) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	figures, err := c.run(ctx, bench, sizes)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return nil, fmt.Errorf("%w within %v (flag -limit); is the machine busy, or are there fewer cores than ranks?", errStuck, o.limit)
	}
	return figures, err
}
