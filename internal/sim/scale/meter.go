package scale

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// meter is the program of all procs, which do their steps together, and the observer of the links.
type meter struct {
	k        *kernel.Kernel
	r        *Report
	j        *startup.Job
	procs    int
	began    time.Time
	progress func(string)

	arrived int           // procs that have finished the present step
	started time.Duration // when the step began
	last    time.Duration // when the last proc finished it

	perSite        []int
	packets, bytes int
	hosts          int       // packets between hosts of one site
	all, allBytes  int       // packets and bytes sent by procs
	got            []int     // bytes received, by rank
	wall           time.Time // when the step began
	server         int       // bytes that the server has sent
}

// gap is the time between steps, long enough for all messages to arrive: each step begins at a
// multiple of it.
const gap = 1000 * far

// program is what each proc does: every step twice, the second of which counts.
func (m *meter) program(e job.Env) error {
	c := e.World()
	for i := range steps {
		for round := range 2 {
			e.Pause(gap - m.k.Now()%gap)
			m.enter()
			if err := steps[i].call(c); err != nil {
				return fmt.Errorf("%s: %w", steps[i].name, err)
			}
			m.leave(steps[i].name, round)
		}
	}
	e.Pause(gap - m.k.Now()%gap)
	return nil
}

// enter begins a step, in the first proc that calls it.
func (m *meter) enter() {
	if m.arrived != 0 {
		return
	}
	if now := m.k.Now() / gap * gap; now != m.started {
		m.started = now
		m.packets, m.bytes, m.hosts = 0, 0, 0
		m.all, m.allBytes, m.wall = 0, 0, time.Now()
		clear(m.perSite)
		clear(m.got)
	}
}

// leave ends the step, in the last proc that calls it.
func (m *meter) leave(name string, round int) {
	m.arrived++
	m.last = m.k.Now()
	if m.arrived < m.procs {
		return
	}
	m.arrived = 0
	if round == 0 {
		if m.r.PerProc == 0 {
			inUse, stacks := heap()
			m.r.PerProc, m.r.Stacks = inUse/m.procs, stacks/m.procs
		}
		return
	}
	took := m.last - m.started
	op := Operation{Name: name, Messages: m.packets, Bytes: m.bytes, Hosts: m.hosts, FarDepth: int(took / far), Depth: int(took % far / (2 * near)),
		All: m.all, AllBytes: m.allBytes, MostBytes: slices.Max(m.got), Took: time.Since(m.wall)}
	for _, n := range m.perSite {
		op.PerSite = max(op.PerSite, n)
	}
	m.r.Operations = append(m.r.Operations, op)
	m.progress(name)
}

// Begin records that startup is over for the first site.
func (m *meter) Begin(j *startup.Job) {
	if m.j == nil {
		m.j = j
		m.r.Startup = time.Since(m.began)
		m.progress("startup")
	}
}

// Link watches the channels, the server's links and those of the procs.
func (m *meter) Link(_ *kernel.Link, ends [2]job.Endpoint) kernel.Watcher {
	switch {
	case ends[0].Kind == job.AtClient:
		return &serverWatch{m: m}
	case ends[0].Kind == job.AtAgent && ends[1].Kind == job.AtAgent:
		return &channelWatch{m: m, ends: ends}
	case ends[0].Kind == job.AtProc && ends[1].Kind == job.AtAgent:
		return &procWatch{m: m, rank: ends[0].Number}
	case ends[0].Kind == job.AtAgent && ends[1].Kind == job.AtProc:
		return &procWatch{m: m, rank: ends[1].Number, proc: 1}
	}
	return nil
}

// Cut does not happen here.
func (m *meter) Cut(*kernel.Link) {}

// Crashed does not happen here.
func (m *meter) Crashed(job.Endpoint) {}

// Fault returns nil: the meter measures, and judges nothing.
func (m *meter) Fault() error { return nil }
