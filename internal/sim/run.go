package sim

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

// Options say how a case is run. The zero value is a run without trace.
type Options struct {
	Trace int  // lines of the trace that are kept
	Twice bool // run it again, and want the same
}

// Bounds of a run. A legal program of the size that Generate makes needs a small part.
const (
	maxEvents = 20_000_000
	maxTime   = 30 * time.Minute
)

// key is what sites prove themselves with where they do.
const key = 0x1234567887654321

// Verdict is how a run went.
type Verdict struct {
	Failure  *Failure // nil: everything was as it must be
	Trace    string   // the last events, if Options asked for them
	Events   uint64
	Time     time.Duration // virtual
	Digest   uint64        // the same for the same case, always
	Coverage Coverage
}

// Run runs a case and judges it. It does not change it.
func Run(c *Case, o Options) *Verdict {
	v := run(c, o.Trace)
	if !o.Twice || v.Failure != nil {
		return v
	}
	if again := run(c, 0); again.Digest != v.Digest || again.Events != v.Events {
		v.Failure = failure("repeat", fmt.Errorf("two runs differ: %d events and digest %016x, %d and %016x", v.Events, v.Digest, again.Events, again.Digest))
	}
	return v
}

func run(c *Case, trace int) *Verdict { return runTwisted(c, trace, func(*execution) {}) }

// runTwisted lets a test change what is about to be run.
func runTwisted(c *Case, trace int, twist func(x *execution)) (v *Verdict) {
	v = &Verdict{Coverage: make(Coverage)}
	if err := c.Check(); err != nil {
		v.Failure = failure("case", err)
		return v
	}
	k := kernel.New(c.Seed)
	k.Keep(trace)
	defer func() {
		if r := recover(); r != nil {
			v.Failure = panicked(r)
		}
		v.Trace, v.Events, v.Time, v.Digest = k.Trace(), k.Events(), k.Now(), k.Digest()
	}()
	x, err := newExecution(k, c, v.Coverage, trace > 0)
	if err != nil {
		v.Failure = failure("case", err)
		return v
	}
	twist(x)
	v.Failure = x.run()
	return v
}

// execution is a case that is being run.
type execution struct {
	c       *Case
	k       *kernel.Kernel
	watch   *watch
	world   *job.World
	records []*script.Record
	cover   Coverage
	program func(e job.Env) error // of each proc
}

// witness lets a rank see how far the others are.
type witness struct {
	job.Env
	records []*script.Record
}

func (w witness) Begun(rank int) int { return w.records[rank].Begun }

func newExecution(k *kernel.Kernel, c *Case, cover Coverage, trace bool) (*execution, error) {
	x := &execution{c: c, k: k, cover: cover}
	x.program = func(e job.Env) error {
		return script.Run(c.Program, witness{e, x.records}, x.records[e.World().Rank()])
	}
	for r := range c.Procs() {
		x.records = append(x.records, &script.Record{Rank: r})
	}
	var err error
	if x.watch, err = newWatch(k, c, cover, trace); err != nil {
		return nil, err
	}
	if x.world, err = job.New(k, x.config()); err != nil {
		return nil, err
	}
	for _, f := range c.Faults {
		x.world.Plan(f)
	}
	return x, nil
}

func (x *execution) config() job.Config {
	auth := startup.Auth{None: true}
	if x.c.Key {
		auth = startup.Auth{HasKey: true, Key: key}
	}
	return job.Config{
		Sites: append([]job.Site(nil), x.c.Sites...), Auth: auth, Direct: x.c.Direct, DialFail: x.c.DialFail,
		Links: x.c.Links, Resume: x.c.Resume, ChunkSize: x.c.chunk(), Observer: x.watch,
		Program: func(e job.Env) error { return x.program(e) },
	}
}

func (x *execution) run() *Failure {
	r := x.world.Run(job.Bounds{Events: maxEvents, Time: maxTime})
	x.cover.run(x, r)
	return x.judge(r)
}
