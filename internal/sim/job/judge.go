package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Errors of the way in which a job has ended.
var (
	// ErrStuck is wrapped if a job does not end. The text names what each part waits for.
	ErrStuck = errors.New("the job is stuck")
	// ErrDisorder is wrapped if some parts of a job ended in order, and others did not.
	ErrDisorder = errors.New("the job has ended in disorder")
	// ErrLate is wrapped when the end of a job came too long after its cause.
	ErrLate = errors.New("the job has ended too late")
	// ErrWrongCause is wrapped when another cause than the proc that was killed was reported to the
	// server, although nothing else had gone wrong.
	ErrWrongCause = errors.New("the wrong one is to blame")
)

type moment struct {
	at    time.Duration
	event uint64
	ready bool          // all procs had been started
	waits time.Duration // maximum time that a site may wait, after its first report, for a report that explains it
}

// broken records the first time at which the job certainly fails.
func (w *Simulation) broken() {
	if w.broke == nil {
		w.broke = &moment{at: w.k.Now(), event: w.k.Events(), ready: w.ready()}
	}
}

func (w *Simulation) ready() bool {
	return !slices.Contains(w.procs, nil)
}

func (w *Simulation) judge() error {
	if err := w.agree(); err != nil {
		return fmt.Errorf("%w: %w", ErrDisorder, err)
	}
	if err := errors.Join(w.afterwards(), outlived(w), left(w)); err != nil || w.broke == nil {
		return err
	}
	if err := errors.Join(w.blamed(), namesLost(w), idleBlamed(w), declined(w)); err != nil {
		return err
	}
	if w.ended == nil {
		w.ended = &moment{at: w.k.Now(), event: w.k.Events()}
	}
	since := w.broke.at // or later, after a worse fault, which has waits of its own
	for _, h := range w.hits {
		if h.Deadly {
			since = max(since, h.At)
		}
	}
	took, limit := w.ended.at-since, w.broke.waits+w.reaction(w.broke.ready)
	if r := w.cfg.Resume; r != nil && withoutServer(w) {
		// A host that is lost when others have finished is awaited by those that have not, until
		// their links to it are given up.
		limit += r.Limit
	}
	if took > limit && !(w.cfg.OnDemand && withoutServer(w)) {
		return fmt.Errorf("%w: %v after it was certain to fail; by then everybody could have known for %v", ErrLate, took, took-limit)
	}
	events, most := w.ended.event-w.broke.event, w.eventsToEnd(took)
	// Otherwise the count includes events of other worlds, or of a program that continues without
	// the server.
	if w.cfg.Worlds == nil && !w.server.dead && events > most {
		return fmt.Errorf("%w: %d events after it was certain to fail, more than %d", ErrLate, events, most)
	}
	return nil
}

// withoutServer reports whether a site was without the server: where there are no channels, which
// connect the sites of jobs of few hosts, it may learn late that others have failed.
func withoutServer(w *Simulation) bool {
	return w.server.dead || slices.ContainsFunc(w.sites, func(s *site) bool { return s.severed })
}

// agree checks that all parts have the same idea of how the job ended. A part that finished in
// order before the failure may report success.
func (w *Simulation) agree() error {
	var failed *site
	for _, s := range w.sites {
		switch {
		case s.err == nil && !s.finished:
			return fmt.Errorf("site %d has no error, and did not finish", s.rank)
		case s.err != nil && !errors.Is(s.err, ErrFailed):
			return fmt.Errorf("site %d could not end: %w", s.rank, s.err)
		case s.err != nil && !s.outcome.Late && !w.server.lost.Has(s.rank) && !s.spared:
			failed = s
		}
	}
	for _, x := range w.spares {
		if x.failed != nil && x.job != nil && failed == nil && w.server.err == nil {
			return fmt.Errorf("the job has ended in order, and to %s with: %w", x.name, x.failed)
		}
	}
	for _, s := range w.sites {
		if s.untold && !w.excused(s) {
			return fmt.Errorf("the server has closed the connection of site %d without a reason", s.rank)
		}
	}
	if s := w.sites[0]; serves(s) && !w.cfg.Survive && w.server.err != nil && s.err == nil {
		return fmt.Errorf("site %d has finished, and the server in its node has ended with: %w", s.rank, w.server.err)
	}
	if failed != nil && w.server.err == nil {
		return fmt.Errorf("the server knows nothing of it: %w", failed.err)
	}
	if len(w.linkless) > 0 {
		x := w.linkless[0]
		return fmt.Errorf("ranks %d and %d have both dialled, again and again, and have no link", x.local, x.peer)
	}
	for _, h := range w.hits {
		if h.Deadly && w.server.err == nil && w.server.lost == 0 && !(h.waits && w.k.Now()-h.At < ending.MaxHoldTime) {
			return fmt.Errorf("nobody knows of it: %s of %s after %v", h.Fault.Kind, h.What, h.At)
		}
	}
	return nil
}

// blamed checks that the server, or all sites if that was lost, were told of the proc that was
// killed, if nothing else went wrong and all sites are ours.
func (w *Simulation) blamed() error {
	hits := slices.DeleteFunc(slices.Clone(w.hits), func(h FaultHit) bool { return h.Fault.Kind == CrashServer && !h.Deadly })
	if len(hits) != 1 || hits[0].Fault.Kind != CrashProc || !hits[0].Deadly || w.cfg.Worlds != nil || w.stalled {
		return nil
	}
	for _, s := range w.sites {
		if s.cfg.Foreign != nil {
			return nil
		}
	}
	want := hits[0].What + " was killed"
	if len(w.hits) > 1 {
		return w.toldWithoutServer(want)
	}
	if w.server.err == nil || !strings.Contains(w.server.err.Error(), want) {
		return fmt.Errorf("%w: %s, and the server was told: %w", ErrWrongCause, want, w.server.err)
	}
	for _, s := range w.sites {
		if s.err != nil && !strings.Contains(s.err.Error(), want) {
			return fmt.Errorf("%w: %s, and site %d ended with: %w", ErrWrongCause, want, s.rank, s.err)
		}
	}
	return nil
}

// toldWithoutServer checks that all sites know a cause that they could only tell each other, where
// there are channels for that.
func (w *Simulation) toldWithoutServer(want string) error {
	for _, s := range w.sites {
		if w.cfg.OnDemand || w.cfg.Resume != nil || s.cfg.NoOnDemand {
			return nil
		}
		if s.err == nil || !strings.Contains(s.err.Error(), want) {
			return fmt.Errorf("%w: without the server, %s, and site %d was told: %w", ErrWrongCause, want, s.rank, s.err)
		}
	}
	return nil
}

// afterwards checks that a proc that failed after Finalize made its own site fail and no other, if
// nothing else went wrong.
func (w *Simulation) afterwards() error {
	if len(w.hits) != 1 || w.hits[0].late == nil || w.cfg.Worlds != nil {
		return nil
	}
	p := w.hits[0].late
	for _, s := range w.sites {
		want := s == p.s
		if (s.err != nil) != want || want && !strings.Contains(s.err.Error(), w.hits[0].What+" "+lateText) {
			return fmt.Errorf("%w: rank %d of site %d failed after its Finalize, and site %d ended with: %w", ErrWrongCause, p.rank, p.s.rank, s.rank, s.err)
		}
	}
	if w.server.err != nil {
		return fmt.Errorf("%w: rank %d failed after its Finalize, and the server was told: %w", ErrWrongCause, p.rank, w.server.err)
	}
	return nil
}

// outlived checks that all sites have gone on without the server if nothing else went wrong.
func outlived(w *Simulation) error {
	if len(w.hits) != 1 || w.hits[0].Fault.Kind != CrashServer || w.hits[0].Deadly || w.cfg.Worlds != nil && w.cfg.ServerLost == 0 || w.cfg.OnDemand || w.stalled {
		return nil
	}
	for _, s := range w.sites {
		if !s.finished {
			return fmt.Errorf("%w: only the server was lost, and site %d ended with: %w", ErrWrongCause, s.rank, s.err)
		}
	}
	for _, x := range w.spares {
		if x.failed != nil && x.job != nil && !x.untold {
			return fmt.Errorf("%w: only the server was lost, and %s ended with: %w", ErrWrongCause, x.name, x.failed)
		}
	}
	return nil
}

// left checks that no proc has waited in Finalize, until its link is given up, for a peer that has
// left MPI, if nothing went wrong but what links are made again for.
func left(w *Simulation) error {
	const lingers = 5 * time.Second // longer than a link waits for the last word of its peer
	if len(w.hits) > 0 || w.cfg.Resume == nil || w.cfg.Survive || !w.ready() {
		return nil
	}
	byTime := func(a, b *proc) int { return cmp.Compare(a.out, b.out) }
	first, last := slices.MinFunc(w.procs, byTime), slices.MaxFunc(w.procs, byTime)
	if took := last.out - first.out - w.stalls; took > max(w.cfg.Resume.Limit/2, lingers) {
		return fmt.Errorf("%w: rank %d has left MPI %v after rank %d", ErrLate, last.rank, took, first.rank)
	}
	return nil
}

// excused reports whether a fault has kept the server from telling a site something.
func (w *Simulation) excused(s *site) bool {
	return w.server.dead || slices.ContainsFunc(w.hits, func(h FaultHit) bool { return h.What == s.conn.end.Link().Name() })
}

// textLimit is the longest reason that the server passes on, in bytes.
const textLimit = 2 << 10

// reaction is how long it takes at most until all parts know that the job has failed: the failure
// shows, a node learns of it and tells the server, the server tells the others, and those end their
// procs. During startup they may also have to wait for a client that does not come.
func (w *Simulation) reaction(ready bool) time.Duration {
	l := &w.cfg.Links
	size := textLimit + 64*len(w.procs) // labels may be under way
	d := notice + hop(&l.Proc, 0) + hop(&l.Channel, 0) + 3*hop(&l.Server, size) + notice + w.stalls + spreads(w)
	if !ready {
		d += w.cfg.Limit + startup.Grace
	}
	if w.cfg.Resume != nil { // the host that is to be told may be gone, and the wait for its channel takes time
		d += agent.TellTime
	}
	if errors.Is(w.server.err, startup.ErrLost) || w.server.lost != 0 { // then sites continue until a channel shows which site is lost
		d += ending.MaxHoldTime / 2
		if w.cfg.Resume != nil {
			d += w.cfg.Resume.Limit
		}
	}
	return d
}

// notice is how long it takes until a node notices that a proc has died, and until it has ended its
// procs.
const notice = 2 * time.Millisecond

// hop is about how long size bytes take at most over a link that chops them up and may hold only a
// few.
func hop(s *kernel.LinkSpec, size int) time.Duration {
	return (s.Delay + s.Jitter) * time.Duration(2+8*size/s.Capacity)
}

// eventsToEnd is the most events that there may be in the time took.
func (w *Simulation) eventsToEnd(took time.Duration) uint64 {
	most := 20_000 + 5_000*uint64(len(w.procs)+len(w.hosts)+len(w.sites))
	if r := w.cfg.Resume; r != nil { // all links to a machine that is silent or gone are dialled again and again
		most += uint64(50+10*len(w.procs)) * uint64((w.stalls+took)/r.Again)
	}
	if w.job != nil && w.job.DataLen < 10 { // so many packets there are for each message
		most *= 2
	}
	return most
}
