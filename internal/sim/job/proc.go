package job

import (
	"cmp"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// proc is one MPI process: its machine, its node connection and its program.
type proc struct {
	s        *site
	h        *host
	rank     wire.WorldRank
	task     *kernel.Task
	agent    *kernel.End
	mpi      *mpi.Proc
	ends     []*kernel.End // of its direct links, and of their lower links
	early    []delivery    // links that arrived before the proc was in MPI
	ending   bool          // it has called Finalize
	fini     bool          // its node has received KindFini
	out      time.Duration // when that was
	said     bool          // it has told its node that it has finished
	heard    time.Duration // when its node gets its last message
	news     time.Duration // when it gets the last news of losses
	loss     string        // the first lost link that it has reported to its node
	aborted  bool          // it has called MPI_Abort
	judged   bool          // its node has noticed its end
	crashed  bool
	unlinked bool  // it may give way to a proc of another world, as their link was cut
	between  bool  // it is delayed in the middle of an MPI call
	fetches  int   // how often it has read memory of another proc
	frozen   bool  // it is stopped in the middle of something, until it dies
	err      error // the error of its program
}

type delivery struct {
	m wireup.Message
	e *kernel.End
}

func startProc(s *site, h *host, r wire.WorldRank, agent *kernel.End) *proc {
	p := &proc{s: s, h: h, rank: r, agent: agent}
	p.task = s.w.k.Go(fmt.Sprintf("rank %d", r), p.main, p.exited)
	return p
}

// main is the whole program.
func (p *proc) main(*kernel.Task) {
	p.err = p.run()
	if p.err != nil {
		p.s.w.k.Tracef("rank %d: %v", p.rank, p.err)
	}
}

func (p *proc) run() (err error) {
	if start := p.s.w.cfg.Start; start != nil {
		if err := start(int(p.rank)); err != nil {
			return err
		}
	}
	members, err := p.s.shared()
	if err != nil {
		return err
	}
	if p.mpi, err = members.Join(p.s.jobOf(p.rank), p.agent, p, p); err != nil {
		return err
	}
	if err := p.joinBoard(); err != nil {
		return err
	}
	for _, d := range p.early {
		p.take(d)
	}
	p.early = nil
	if len(p.s.parts) > 0 {
		part, _ := p.s.parts.procOf(int(p.rank - p.s.job.Clients[p.s.rank].FirstProc))
		part.inMPI()
		if err := p.mpi.FindParents(); err != nil {
			return err
		}
	}
	if err := p.s.w.cfg.Program(p); err != nil {
		return err
	}
	p.ending = true
	if err := p.mpi.Finalize(); err != nil {
		return err
	}
	if most := p.s.w.cfg.Stays; most > 0 {
		p.Pause(p.s.w.k.Between(0, most))
	}
	return nil
}

func (s *site) shared() (*mpi.Roster, error) {
	if s.members != nil {
		return s.members, nil
	}
	var err error
	if s.members, err = mpi.NewRoster(s.table, s.w.members); err != nil {
		return nil, err
	}
	s.w.members = s.members
	return s.members, nil
}

func (p *proc) exited() {
	p.closeLinks()
	x := ending.Exit{Text: "exited with status 0"}
	switch f := p.s.w.failLate[int(p.rank)]; {
	case p.err != nil:
		x = ending.Exit{Text: fmt.Sprintf("failed: %v", p.err), Status: 1}
	case f != nil && p.said && !p.s.left:
		p.s.w.failsLate(p, *f)
		x = ending.Exit{Text: lateText, Status: 4}
	}
	p.noticed(x)
}

// noticed makes the node notice the end of the proc's process, after all messages of the proc.
func (p *proc) noticed(x ending.Exit) {
	k := p.s.w.k
	k.After(max(k.Between(0, time.Millisecond), p.heard+1-k.Now()), func() {
		p.s.w.cfg.Worlds.gone(p)
		p.judged, x.At = true, p.s.w.time()
		if p.h.survival.on && !p.fini && !p.aborted {
			p.h.survival.procLost(p, x)
		} else {
			p.s.report(func(now time.Time) { _ = p.s.end.ProcEnded(now, p.standing(), x) })
		}
		p.s.finish()
	})
}

func (p *proc) standing() ending.Proc {
	x := ending.Proc{Name: fmt.Sprintf("rank %d", p.rank), Number: int(p.rank), State: ending.InMPI, Loss: p.loss, Aborted: p.aborted}
	if p.fini {
		x.State = ending.Finished
	}
	return x
}

func (p *proc) closeLinks() {
	_ = p.agent.Close()
	for _, e := range p.ends {
		_ = e.Close()
	}
}

// down ends the proc because the job has ended.
func (p *proc) down() {
	p.task.Kill()
	_ = p.agent.Close()
	for _, e := range p.ends {
		_ = e.Close()
	}
}

// crash is the sudden death of the proc. Its node learns of it.
func (p *proc) crash() {
	if p.task.Ended() {
		return
	}
	p.crashed = true
	p.down()
	p.s.w.crashed(Endpoint{AtProc, int(p.rank)})
	if p.s.cfg.Together {
		endTogether(p.s)
	}
	p.noticed(ending.Exit{Text: "was killed", Status: 137})
}

// World returns the proc's MPI_COMM_WORLD.
func (p *proc) World() *mpi.Comm { return p.mpi.World() }

// BufferAttach calls MPI_Buffer_attach for this proc.
func (p *proc) BufferAttach(size int) error { return p.mpi.BufferAttach(size) }

// BufferDetach calls MPI_Buffer_detach for this proc.
func (p *proc) BufferDetach() (size int, err error) { return p.mpi.BufferDetach() }

// Pause makes the proc compute for d.
func (p *proc) Pause(d time.Duration) { p.task.Sleep(d, "computes") }

// Log adds a line to the trace.
func (p *proc) Log(format string, args ...any) {
	if k := p.s.w.k; k.Tracing() {
		k.Tracef("rank %d: "+format, append([]any{p.rank}, args...)...)
	}
}

// NewSet creates the set in which the proc sleeps.
func (p *proc) NewSet() (machine.Set, error) { return p.task.NewSet(), nil }

// AfterFunc sets a timer, which does nothing once the proc is dead.
func (p *proc) AfterFunc(d time.Duration, f func()) machine.Timer {
	var t *kernel.Timer
	t = p.s.w.k.After(d, func() {
		switch {
		case p.task.Ended() || p.frozen:
		case p.between: // timers do not run in the middle of an MPI call
			t.Reset(time.Microsecond)
		default:
			f()
		}
	})
	return t
}

// Now returns the virtual time.
func (p *proc) Now() time.Time { return p.s.w.time() }

// Watch makes the observer see the bytes of a resumable link.
func (p *proc) Watch(l link.Link, session []byte) link.Link {
	x := p.s.w.sessions[resume.ResumableID(session)]
	if x.away != nil && x.away.of[0] == p || x.away == nil && x.places[0] == p.endpoint() {
		return x.watch(l, 0)
	}
	return x.watch(l, 1)
}

// Exit ends the proc.
func (p *proc) Exit(int, string) { p.task.Kill() }

// Send sends a message from the proc to its node.
func (p *proc) Send(m wireup.Message) error {
	k := p.s.w.k
	p.said = p.said || m.Kind == wireup.KindFini
	p.heard = max(p.heard+1, k.Now()+k.Between(0, 20*time.Microsecond))
	k.After(p.heard-k.Now(), func() {
		if !p.s.left {
			p.s.told(p, m)
		}
	})
	return nil
}

func (s *site) told(p *proc, m wireup.Message) {
	if m.Meeting != nil && s.w.cfg.Worlds.heard(p, &m) {
		return
	}
	switch m.Kind {
	case wireup.KindOpen:
		if m.Resumable != nil {
			s.w.reopen(p, m)
		} else {
			s.w.open(p, m.Peer)
		}
	case wireup.KindFini:
		p.fini, p.out = true, s.w.k.Now()
		p.h.sw.ProcDone(p.rank)
	case wireup.KindAbort:
		s.report(func(now time.Time) { _ = s.end.ProcAborted(now, p.standing(), m.Code, m.Reason) })
		p.aborted = true
	case wireup.KindLost:
		peer := fmt.Sprintf("rank %d", m.Peer)
		p.loss = cmp.Or(p.loss, "it had lost its link to "+peer)
		report := func() { s.report(func(now time.Time) { s.end.ProcUnlinked(now, p.standing(), peer, m.Reason) }) }
		switch {
		case m.InOrder:
		case p.h.survival.on:
			p.h.survival.unlinked(p, m.Peer, report)
		default:
			report()
		}
	default:
	}
}

func (p *proc) give(m wireup.Message, e *kernel.End) {
	d := delivery{m, e}
	if e != nil {
		if p.task.Ended() {
			if p.h.silent {
				hush(p.h, e)
			} else {
				_ = e.Close()
			}
			return
		}
		p.ends = append(p.ends, e)
	}
	if p.mpi == nil {
		p.early = append(p.early, d)
		return
	}
	p.take(d)
}

func (p *proc) take(d delivery) {
	var l link.Link
	if d.e != nil {
		l = d.e
		if b := d.e.Boxed(); b != nil {
			l = b
		}
	}
	p.mpi.Hear(d.m, l)
}

// Random returns bytes that the seed decides.
func (p *proc) Random(b []byte) {
	for i := range b {
		b[i] = byte(p.s.w.k.Rand().Uint32())
	}
}

// Freeze stops the proc where it is, until it is killed. It returns false if the proc is not
// running.
func (p *proc) Freeze() bool {
	if !p.task.Running() {
		return false
	}
	p.frozen = true
	for {
		p.task.Sleep(time.Hour, "is frozen")
	}
}

// MPI returns the proc's own object, for functions that do not belong to a communicator.
func (p *proc) MPI() *mpi.Proc { return p.mpi }
