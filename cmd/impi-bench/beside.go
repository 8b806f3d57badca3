package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// insideName is the variant without plugins.
const insideName = "in-process"

const eachName = "timeline-each"

// variants are the values of -beside: impi once more, with one thing changed, such as the
// transport.
var variants = withTransports(map[string]func(*options){
	insideName:  func(*options) {}, // has its own runner
	"resume":    func(o *options) { o.resume = "true" },
	"no-resume": func(o *options) { o.resume = "false" },
	"calls":     func(o *options) { o.calls = true },
	"progress":  func(o *options) { o.looks = "1ms" },
	"survive":   func(o *options) { o.survive = true },
	"timeline":  func(o *options) { o.timeline = true },
	eachName:    func(o *options) { o.timeline, o.each = true, true },
	"channel":   func(o *options) { o.path = "channel" },
	"fd":        func(o *options) { o.plane = string(transports.PlaneFD) },
	"peer-shm":  func(o *options) { o.plane = string(transports.PlanePeerSHM) },
	"rdma":      func(o *options) { o.plane = string(transports.PlaneRDMA) },
	"ring":      func(o *options) { o.plane = string(transports.PlaneRing) },
	"stream":    func(o *options) { o.plane = string(transports.PlaneStream) },
	"grpc":      func(o *options) { o.plane = string(transports.PlaneGRPC) },
	"lent":      func(o *options) { o.lent = true },
})

func withTransports(m map[string]func(*options)) map[string]func(*options) {
	for _, name := range insideNames() {
		m[name] = func(o *options) { o.transport = name }
	}
	return m
}

func variantNames() string { return strings.Join(slices.Sorted(maps.Keys(variants)), ", ") }

// checkBeside checks the variants. Settings that are compared must be explicit, not left to
// the node.
func (o *options) checkBeside() error {
	if len(o.beside) > 0 && o.resume == "" {
		o.resume = "false"
	}
	for _, name := range o.beside {
		if variants[name] == nil {
			return fmt.Errorf("-beside %q: there are %s", name, variantNames())
		}
	}
	if !slices.Contains(o.beside, insideName) {
		return nil
	}
	if !slices.Contains(insideNames(), o.transport) {
		return fmt.Errorf("-beside %s needs -transport %s", insideName, strings.Join(insideNames(), ", "))
	}
	if o.resume == "true" || o.path != "direct" || !slices.Equal(o.ranks, []int{2}) {
		return fmt.Errorf("-beside %s: two procs have one direct link, which is never resumed; leave out -resume true, -path channel and -procs", insideName)
	}
	return nil
}

func (w *own) newVariant(name string) contender {
	if name == insideName {
		return contender{name: name, run: w.runInside, skips: func(bench string) bool { return !benchmarks[bench].ranks }}
	}
	o := *w.o
	variants[name](&o)
	v := *w
	v.o = &o
	c := v.contender(name)
	c.skips = func(bench string) bool { return bench == "plugins" }
	return c
}

func (w *own) contender(name string) contender {
	return contender{name: name, run: w.run, begin: func(ctx context.Context, bench string, sizes []int) (*session, error) {
		return w.begin(ctx, name, bench, sizes)
	}}
}
