package worlds

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Case is everything that is decided before the worlds begin.
type Case struct {
	Seed    uint64
	Program *Program
	Sites   [][]job.Site // of each world
	Links   job.Links
	Abroad  job.AbroadConfig
	Direct  bool
}

// Generate makes the case that a seed decides.
func Generate(seed uint64, l Limits) *Case {
	rng := rand.New(rand.NewPCG(seed, 0x776f726c6473))
	c := &Case{Seed: seed, Program: generate(rng, l), Direct: rng.IntN(4) > 0}
	spec := func() kernel.LinkSpec {
		return kernel.LinkSpec{
			Delay: time.Duration(rng.IntN(100)) * time.Microsecond, Jitter: time.Duration(rng.IntN(500)) * time.Microsecond,
			Capacity: 1 << (9 + rng.IntN(8)), Chop: 0.3 * float64(rng.IntN(2)), Lend: 0.5 * float64(rng.IntN(2)),
		}
	}
	c.Links = job.Links{Server: spec(), Proc: spec(), Channel: spec(), Direct: spec()}
	c.Abroad = job.AbroadConfig{Link: spec()}
	for _, size := range c.Program.Worlds {
		c.Sites = append(c.Sites, sitesOf(rng, size))
	}
	return c
}

// sitesOf puts procs at one or two sites.
func sitesOf(rng *rand.Rand, procs int) []job.Site {
	params := startup.DefaultParams()
	if rng.IntN(2) == 0 {
		params.DataLen = 1 << (4 + rng.IntN(8))
		params.HiWater = uint32(1 + rng.IntN(8))
		params.AckMark = 1 + uint32(rng.IntN(int(params.HiWater)))
	}
	if procs == 1 || rng.IntN(2) == 0 {
		return []job.Site{{Hosts: []int{procs}, Params: params}}
	}
	n := 1 + rng.IntN(procs-1)
	return []job.Site{{Hosts: []int{n}, Params: params}, {Hosts: []int{procs - n}, Params: params}}
}

// String is the case as text.
func (c *Case) String() string {
	return fmt.Sprintf("seed %d, direct links %v\n%v", c.Seed, c.Direct, c.Program)
}

// Verdict is how a run went.
type Verdict struct {
	Oracle  string // who found what is wrong; empty: nothing is
	Err     error
	Trace   string
	Events  uint64
	Time    time.Duration // virtual
	Digest  uint64
	Covered map[string]int64
}

// Bounds of a run.
const (
	maxEvents = 10_000_000
	maxTime   = 10 * time.Minute
)

// RunSeed runs what a seed decides: mostly a program, and the death of a root otherwise.
func RunSeed(seed uint64, l Limits, trace int) *Verdict {
	if isDeath(seed, l) {
		return NewDeath(seed).Run(trace)
	}
	return Run(Generate(seed, l), trace)
}

// isDeath tells whether it is the latter.
func isDeath(seed uint64, l Limits) bool { return seed%4 == 3 && !l.NoFaults }

// Describe is what RunSeed runs, as text.
func Describe(seed uint64, l Limits) string {
	if isDeath(seed, l) {
		return fmt.Sprintf("seed %d\n%v\n", seed, NewDeath(seed))
	}
	return Generate(seed, l).String()
}

// Run runs a case and judges it. trace is how many events are kept for Verdict.Trace.
func Run(c *Case, trace int) *Verdict { return runWith(c, trace, func(*execution) {}) }

// runWith lets the caller settle more of what is about to be run.
func runWith(c *Case, trace int, settle func(x *execution)) (v *Verdict) {
	v = &Verdict{Covered: map[string]int64{}}
	k := kernel.New(c.Seed)
	k.Keep(trace)
	defer func() {
		if r := recover(); r != nil {
			v.Oracle, v.Err = "panic", fmt.Errorf("%v", r)
		}
		v.Trace, v.Events, v.Time, v.Digest = k.Trace(), k.Events(), k.Now(), k.Digest()
	}()
	x, err := newExecution(k, c, v.Covered)
	if err != nil {
		v.Oracle, v.Err = "case", err
		return v
	}
	settle(x)
	v.Oracle, v.Err = x.judge(job.RunAll(k, job.Bounds{Events: maxEvents, Time: maxTime}, x.worlds...))
	return v
}

// execution is a case that is being run.
type execution struct {
	k       *kernel.Kernel
	seed    uint64
	program *Program
	groups  map[int]*group
	abroad  *job.Abroad
	worlds  []*job.World
	ports   map[int]string // by operation
	cover   map[string]int64
	results map[result]outcome
	ranks   map[int]*rank // that have begun
	gone    map[int]bool  // procs that have died
	wrong   error         // the first that a proc has found

	steps  *steps
	death  *Death              // nil: everybody runs the program
	doomed bool                // the death was decided
	part   func(r *rank) error // what each proc does
	names  map[string]string   // ports
	twist  func(r *rank)       // what a test does to each proc before it begins; nil: nothing
}

// result is of a new communicator, for one member.
type result struct{ op, number, proc int }

func (r result) compare(s result) int {
	return cmp.Or(cmp.Compare(r.op, s.op), cmp.Compare(r.number, s.number), cmp.Compare(r.proc, s.proc))
}

// outcome is what the member got.
type outcome struct {
	context uint64
	class   mpi.Class
	failed  bool
}

func newExecution(k *kernel.Kernel, c *Case, cover map[string]int64) (*execution, error) {
	m := newModel(c.Program)
	for _, o := range c.Program.Ops {
		if err := m.apply(o); err != nil {
			return nil, err
		}
	}
	x := &execution{
		k: k, seed: c.Seed, program: c.Program, groups: m.groups, cover: cover,
		ports: map[int]string{}, results: map[result]outcome{}, gone: map[int]bool{}, ranks: map[int]*rank{}, names: map[string]string{},
		part: (*rank).run,
	}
	x.steps = &steps{x: x, at: map[int]int{}, reached: func(int, int) {}}
	c.Abroad.Calls = x.steps
	x.abroad = job.NewAbroad(k, c.Abroad)
	for w := range c.Program.Worlds {
		first := c.Program.first(w)
		world, err := job.New(k, job.Config{
			Sites: c.Sites[w], Direct: c.Direct, Links: c.Links, Abroad: x.abroad,
			Program: func(e job.Env) error {
				r := x.newRank(e.(proc), first+e.World().Rank())
				x.ranks[r.me] = r
				if x.twist != nil {
					x.twist(r)
				}
				err := x.part(r)
				if err != nil && x.wrong == nil && !x.gone[r.me] {
					x.wrong = err
				}
				return err
			},
		})
		if err != nil {
			return nil, err
		}
		x.worlds = append(x.worlds, world)
	}
	return x, nil
}

// name is b1 for rank 1 of the second world.
func (x *execution) name(proc int) string {
	w := x.program.worldOf(proc)
	return fmt.Sprintf("%c%d", 'a'+w, proc-x.program.first(w))
}

// procOf is the reverse of member.
func (x *execution) procOf(m dynamic.Member) int {
	for w := range x.worlds {
		if x.worlds[w].Name() == m.World {
			return x.program.first(w) + int(m.Rank)
		}
	}
	panic(fmt.Sprintf("worlds: nobody is %v", m))
}

func (x *execution) dead(proc int) bool { return x.gone[proc] }

func (x *execution) between(lo, hi time.Duration) time.Duration { return x.k.Between(lo, hi) }

// note keeps what a member got.
func (x *execution) note(op, me, number int, c *mpi.Comm, err error) {
	o := outcome{failed: err != nil}
	if err == nil {
		o.context = uint64(c.Context())
	} else {
		o.class = mpi.ErrorClass(err)
	}
	x.results[result{op, number, me}] = o
}

// judge says what is wrong with how the worlds have ended, and who found it.
func (x *execution) judge(all []job.Result) (oracle string, err error) {
	switch {
	case errors.Is(x.wrong, ErrContexts):
		return "contexts", x.wrong
	case errors.Is(x.wrong, ErrLeak):
		return "leak", x.wrong
	case errors.Is(x.wrong, ErrResult):
		return "result", x.wrong
	case x.wrong != nil:
		return "order", x.wrong
	}
	if x.death != nil {
		if oracle, err := x.survived(all); err != nil {
			return oracle, err
		}
	}
	for w, r := range all {
		if x.death != nil && r.Struck {
			continue
		}
		switch {
		case errors.Is(r.Err, job.ErrStuck):
			return "liveness", fmt.Errorf("world %c: %w", 'a'+w, r.Err)
		case r.Err != nil:
			return "order", fmt.Errorf("world %c: %w", 'a'+w, r.Err)
		}
		if err := errors.Join(append(r.Sites(), r.Server())...); err != nil {
			return "order", fmt.Errorf("world %c: %w", 'a'+w, err)
		}
	}
	if err := x.agree(); err != nil {
		return "result", err
	}
	if ports, pairs, links := x.abroad.Left(); ports+links > 0 || pairs > 0 {
		return "leak", fmt.Errorf("%w: the nodes have %d ports, %d pairs and %d links", ErrLeak, ports, pairs, links)
	}
	x.count()
	return "", nil
}

// agree compares what members got.
func (x *execution) agree() error {
	for _, key := range slices.SortedFunc(maps.Keys(x.results), result.compare) {
		o := x.results[key]
		for _, proc := range x.groups[key.number].all() {
			other, ok := x.results[result{key.op, key.number, proc}]
			if ok && other != o {
				return fmt.Errorf("%w: step %d: %s has %+v of communicator %d, %s has %+v",
					ErrResult, key.op+1, x.name(key.proc), o, key.number, x.name(proc), other)
			}
		}
	}
	return nil
}

func (x *execution) count() {
	n := x.abroad.Counts
	for name, v := range map[string]int{
		"calls": n.Calls, "calls that waited": n.Waited, "links between worlds": n.Links, "ties": n.Ties,
	} {
		x.cover[name] += int64(v)
	}
	x.cover["cases"]++
}
