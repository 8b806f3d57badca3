package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

// Options are settings for a run of a case. The zero value is a run without trace.
type Options struct {
	Trace int  // number of lines of the trace that are kept
	Twice bool // run the case twice, and compare
}

// Bounds of a run. A legal program of Generate's size needs a small part of them.
const (
	maxEvents = 20_000_000
	maxTime   = 30 * time.Minute
)

const key = 0x1234567887654321

// Verdict is the result of a run.
type Verdict struct {
	Failure  *Failure // nil: everything was right
	Trace    string   // the last events, if Options asked for them
	Events   uint64
	Time     time.Duration // virtual time of the run
	Digest   uint64        // equal for all runs of the same case
	Coverage Coverage
}

// Run runs a case and judges it. It does not change the case.
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

// runTwisted is Run with a hook for tests that change the execution before it runs.
func runTwisted(c *Case, trace int, twist func(x *execution)) *Verdict {
	if err := c.Check(); err != nil {
		return &Verdict{Failure: failure("case", err), Coverage: make(Coverage)}
	}
	return play(c, trace, twist)
}

// play is runTwisted for a case that has been checked.
func play(c *Case, trace int, twist func(x *execution)) (v *Verdict) {
	v = &Verdict{Coverage: make(Coverage)}
	k := kernel.New(c.Seed)
	k.KeepTrace(trace)
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

type execution struct {
	c       *Case
	k       *kernel.Kernel
	meeting *job.Worlds // nil: there is one world
	steps   *steps      // steps of connecting
	worlds  []*job.Simulation
	watches []*watch // by world
	records []*script.Record
	cover   Coverage
	shared  script.Shared
	trace   bool
	program func(e script.Env) error // runs in each proc

	misplaced error // a spawned world has other sites than it must have; nil: none has
}

type proc interface {
	job.Env
	MPI() *mpi.Proc
	Freeze() bool
	Sever(late bool)
	Rejoin()
	LoseAnswer()
}

type player struct {
	proc
	x      *execution
	number int
}

func (p player) Begun(rank int) int                         { return p.x.records[rank].Begun }
func (p player) Number() int                                { return p.number }
func (p player) Between(lo, hi time.Duration) time.Duration { return p.x.k.Between(lo, hi) }
func (p player) Now() time.Duration                         { return p.x.k.Now() }
func (p player) Shared() *script.Shared                     { return &p.x.shared }

func newExecution(k *kernel.Kernel, c *Case, cover Coverage, trace bool) (*execution, error) {
	x := &execution{c: c, k: k, cover: cover, trace: trace}
	x.program = func(e script.Env) error { return script.Run(c.Program, e, x.records[e.(player).number]) }
	x.shared = script.Shared{
		Ports: map[string]string{}, Gone: map[int]bool{}, Said: map[string]string{},
		Waited: func() int { return x.meeting.Counts.Waited }, Count: func(what string) { cover["deaths "+what]++ },
		NodeOf: x.nodeOf, Room: c.Names,
		Kill: func(world int) {
			k.After(0, func() { x.worlds[world].InjectFault(job.Fault{Kind: job.CrashProc}) })
		},
		Over: func(world int) bool { return x.worlds[world].Over() },
	}
	for r := range c.Procs() {
		x.records = append(x.records, &script.Record{Rank: r})
	}
	worlds := max(1, len(c.Program.Worlds))
	if worlds > 1 {
		x.meet()
	}
	x.worlds, x.watches = make([]*job.Simulation, worlds), make([]*watch, worlds)
	first := 0
	for w := range worlds {
		if _, spawned := c.Program.Spawned(w); spawned {
			continue
		}
		one := c.job(w)
		watch, err := newWatch(k, one, cover, trace)
		if err != nil {
			return nil, err
		}
		world, err := job.New(k, x.config(one, watch, first))
		if err != nil {
			return nil, err
		}
		x.worlds[w], x.watches[w] = world, watch
		first += procsAt(one.Sites)
	}
	if _, losses := c.Program.Recover(); losses {
		x.survive()
		return x, nil
	}
	for _, f := range c.Faults {
		x.worlds[0].Plan(f)
	}
	return x, nil
}

func (x *execution) config(c *Case, w *watch, first int) job.Config {
	auth := startup.Auth{None: true}
	if c.Key {
		auth = startup.Auth{HasKey: true, Key: key}
	}
	var observer job.Observer = w
	_, survive := c.Program.Recover()
	if survive { // the checker does not know what sites say of losses
		observer = nil
	}
	resume := c.Resume
	if x.meeting != nil { // that of the links between the worlds
		resume = nil
	}
	var spares []job.Spare
	for _, s := range c.Spares {
		spares = append(spares, s.Spare)
	}
	return job.Config{
		Spares: spares, ServerLost: c.ServerLost, Stays: c.Stays,
		Survive: survive, Serves: c.Serves, Questions: c.Questions,
		Sites: append([]job.Site(nil), c.Sites...), Auth: auth, Direct: c.Direct, Boxes: c.Boxes, Boards: c.Boards, DialFail: c.DialFail, OnDemand: c.OnDemand, Firewall: c.Firewall, Silent: c.Silent,
		Links: c.Links, Resume: resume, ChunkSize: c.chunk(), Observer: observer, Worlds: x.meeting,
		Program: func(e job.Env) error {
			p := player{e.(proc), x, first + e.World().Rank()}
			if x.steps != nil {
				x.steps.players[p.number] = p
			}
			return x.play(p)
		},
	}
}

// turn is how long rank 0 computes, again and again, in a job that goes on after its program.
const turn = 60 * time.Millisecond

// play runs the program of a proc in the time that the case gives it. Where the job goes on after
// that, all procs wait for rank 0 most of the time.
func (x *execution) play(p player) error {
	if x.c.Starts > 0 {
		p.Pause(x.k.Between(0, x.c.Starts))
	}
	if err := x.program(p); err != nil {
		return err
	}
	for left := x.c.Lasts; left > 0; left -= turn {
		if p.World().Rank() == 0 {
			p.Pause(turn)
		}
		if err := p.World().Barrier(); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) run() *Failure {
	first := slices.DeleteFunc(slices.Clone(x.worlds), func(w *job.Simulation) bool { return w == nil })
	all := job.RunAll(x.k, job.Bounds{Events: maxEvents, Time: maxTime}, first...)
	x.cover.run(x, all)
	return x.judge(all)
}

func (x *execution) nodeOf(proc int) int {
	world, first := x.c.Program.WorldOf(proc), 0
	for _, n := range x.c.Program.Worlds[:world] {
		first += n
	}
	sites, _, _ := x.c.at(world) // checked before
	site := 0
	for rank := proc - first; rank >= procsAt(sites[site:site+1]); site++ {
		rank -= procsAt(sites[site : site+1])
	}
	return world<<16 + site
}
