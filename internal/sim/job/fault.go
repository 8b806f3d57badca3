package job

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// FaultKind is a kind of fault.
type FaultKind string

// The kinds of fault. Cutting or ending a resumable link does no harm.
const (
	CrashProc     FaultKind = "crash-proc"     // Target is a world rank
	FailLate      FaultKind = "fail-late"      // Target is a world rank: its program fails after Finalize, whenever that is
	CrashNode     FaultKind = "crash-node"     // Target is a client rank
	CrashServer   FaultKind = "crash-server"   // Target is not used; ends the job only during startup
	CutLink       FaultKind = "cut"            // Target picks one of the links in use
	HalfClose     FaultKind = "half-close"     // Target picks a link, as for CutLink; one end is closed
	LoseHost      FaultKind = "lose-host"      // Target is a machine, counted over all own sites with several machines
	Stall         FaultKind = "stall"          // Target picks a link, as for CutLink
	PluginCrash   FaultKind = "crash-plugin"   // Target is a client rank
	DrainPlugin   FaultKind = "drain-plugin"   // Target is a client rank; without a remainder by 4, there is no other transport
	UndrainPlugin FaultKind = "undrain-plugin" // Target is as for DrainPlugin: its plugin is used again
	NoMPI         FaultKind = "no-mpi"         // Target is as for LoseHost: its procs end well without a call of Init, from the start
	FailLauncher  FaultKind = "fail-launcher"  // Target picks one of the sites whose procs a launcher starts and ends together
	FailEarly     FaultKind = "fail-early"     // Target picks one of the own sites of one machine: it fails before it joins the job
)

// Kinds lists the kinds of fault of all jobs, without FailLauncher.
var Kinds = []FaultKind{CrashProc, FailLate, CrashNode, CrashServer, CutLink, HalfClose, LoseHost, Stall, PluginCrash, DrainPlugin, UndrainPlugin, NoMPI, FailEarly}

// Deadly reports whether a fault of this kind may end the job.
func (k FaultKind) Deadly() bool {
	return !slices.Contains([]FaultKind{Stall, PluginCrash, DrainPlugin, UndrainPlugin}, k)
}

// Fault is one fault that happens in a run.
type Fault struct {
	Kind   FaultKind
	At     time.Duration
	Target int

	// Event, if not 0, is the number of the kernel's event before which the fault happens; At is
	// ignored then.
	Event uint64

	// Ending means that At is counted from when the first site has finished.
	Ending bool
}

// String returns the fault in the form that ParseFault reads.
func (f Fault) String() string {
	if f.Event > 0 {
		return fmt.Sprintf("%s #%d %d", f.Kind, f.Event, f.Target)
	}
	if f.Ending {
		return fmt.Sprintf("%s end+%v %d", f.Kind, f.At, f.Target)
	}
	return fmt.Sprintf("%s %v %d", f.Kind, f.At, f.Target)
}

// ErrFault is wrapped by errors of ParseFault.
var ErrFault = errors.New("invalid fault")

// ParseFault parses a fault: its kind, when it happens, and its target. The time is virtual time,
// as 1.5ms, or since the first site has finished, as end+1.5ms, or the number of an event, as #1234.
func ParseFault(s string) (Fault, error) {
	words := strings.Fields(s)
	if len(words) != 3 {
		return Fault{}, fmt.Errorf("%w %q: write a kind, a time and a target", ErrFault, s)
	}
	f := Fault{Kind: FaultKind(words[0])}
	if f.Kind != FailLauncher && !slices.Contains(Kinds, f.Kind) {
		return f, fmt.Errorf("%w %q: the kinds are %v", ErrFault, s, Kinds)
	}
	var err error
	if number, ok := strings.CutPrefix(words[1], "#"); ok {
		f.Event, err = strconv.ParseUint(number, 10, 64)
		if err == nil && f.Event == 0 {
			return f, fmt.Errorf("%w %q: events are numbered from 1", ErrFault, s)
		}
	} else {
		words[1], f.Ending = strings.CutPrefix(words[1], "end+")
		f.At, err = time.ParseDuration(words[1])
	}
	if err != nil || f.At < 0 {
		return f, fmt.Errorf("%w %q: the time is a duration like 1.5ms or end+1.5ms, or an event like #1234", ErrFault, s)
	}
	if f.Target, err = strconv.Atoi(words[2]); err != nil || f.Target < 0 {
		return f, fmt.Errorf("%w %q: the target is a number, not negative", ErrFault, s)
	}
	return f, nil
}

// Plan schedules a fault. It must be called before Run.
func (w *Simulation) Plan(f Fault) {
	switch f.Kind {
	case NoMPI:
		idle(w, f)
		return
	case FailEarly:
		failsEarly(w, f)
		return
	case FailLate:
		w.failLate[f.Target%len(w.procs)] = &f
		return
	default:
	}
	switch {
	case f.Ending:
		AtEnd(w, func() { w.k.After(f.At, func() { w.commit(f) }) })
		return
	case f.Event > 0:
		w.k.AtEvent(f.Event, func() { w.commit(f) })
		return
	}
	w.k.After(f.At, func() { w.commit(f) })
}

// AtEnd has f called when the first site of a job has finished.
func AtEnd(w *Simulation, f func()) { w.atEnd = append(w.atEnd, f) }

// InjectFault makes a fault happen now.
func (w *Simulation) InjectFault(f Fault) { w.commit(f) }

// FaultHit is a fault that has hit something that had not ended.
type FaultHit struct {
	Fault Fault
	What  string
	At    time.Duration
	Event uint64 // number of events before the fault

	// Deadly is set if the job cannot have ended in order after the fault.
	Deadly bool

	late *proc // the proc whose program failed after Finalize

	// waits is set if the node waits for an explanation of the fault. Until the wait ends the job
	// may still end in order, if it no longer needs what was hit.
	waits bool
	lost  *host
	idle  *host
	early bool // a site has not joined
}

func (w *Simulation) commit(f Fault) {
	if w.Over() {
		return
	}
	switch f.Kind {
	case CrashProc:
		if p := w.procs[f.Target%len(w.procs)]; p != nil && !p.task.Ended() {
			w.hit(f, fmt.Sprintf("rank %d", p.rank), !p.s.left && !p.said && !survives(w))
			p.crash()
		}
	case FailLate, NoMPI, FailEarly: // handled by Plan
	case CrashNode:
		if s := w.sites[f.Target%len(w.sites)]; !s.done {
			w.hit(f, fmt.Sprintf("the node of site %d", s.rank), !survives(w))
			s.crash()
		}
	case LoseHost:
		lose(w, f)
	case CrashServer:
		if w.cfg.Serves { // it is in the process of that node
			w.commit(Fault{Kind: CrashNode, At: f.At, Event: f.Event, Ending: f.Ending})
			return
		}
		if !w.server.ended {
			w.hit(f, "the server", endsWithServer(w, true))
			w.server.crash()
		}
	case PluginCrash:
		w.met[f.Kind]++
		w.crashPlugin(w.sites[f.Target%len(w.sites)].rank)
	case DrainPlugin:
		drainPlugin(w, f)
	case UndrainPlugin:
		undrainPlugin(w, f)
	case FailLauncher:
		failLauncher(w, f)
	case CutLink, HalfClose, Stall:
		w.harm(f)
	}
}

// hit records that a fault may end the job. It must be called before the fault happens.
func (w *Simulation) hit(f Fault, what string, deadly bool) {
	w.k.Tracef("%s of %s", f.Kind, what)
	w.met[f.Kind]++
	w.hits = append(w.hits, FaultHit{Fault: f, What: what, At: w.k.Now(), Event: w.k.Events(), Deadly: deadly})
	if deadly {
		w.broken()
	}
}

const lateText = "exited with status 4"

// failsLate records that a proc's program fails after its Finalize, which does not end the job.
func (w *Simulation) failsLate(p *proc, f Fault) {
	w.hit(f, fmt.Sprintf("rank %d", p.rank), false)
	w.hits[len(w.hits)-1].late = p
}

// Maximum durations of a stall of a link. Once all hosts have their channels, every fourth stall
// may last longer than failures wait for an explanation, but not so long that a machine is taken
// for lost.
const (
	maxStall  = 20 * time.Millisecond
	longStall = 20 * time.Second
)

func (w *Simulation) harm(f Fault) {
	var alive []*observedLink
	for _, s := range w.openLinks {
		if !s.l.Over() {
			alive = append(alive, s)
		}
	}
	w.openLinks = alive
	if len(alive) == 0 {
		return
	}
	s := w.target(f, alive)
	i := w.k.Rand().IntN(2)
	switch f.Kind {
	case Stall:
		w.k.Tracef("stall of %s", s.l.Name())
		w.met[f.Kind]++
		most := maxStall
		if f.Target%4 == 0 && w.ready() {
			most, w.stalled = longStall, true
			if s.tree {
				most = silenceLimit * 2 / 5 // no machine is lost by it
			}
		}
		d := w.k.Between(0, most)
		w.stalls += d
		s.l.Stall(d)
		return
	case HalfClose:
		if !s.l.Ends[i].Open() || s.is(AtProc, AtAgent) && i == 0 { // nothing notices that a living proc stops sending
			return
		}
		w.strike(f, s, s.ends[i])
		s.loses(w)
		_ = s.l.Ends[i].CloseSend() // fails for ends that cannot send anyway
	case CutLink:
		w.strike(f, s, s.ends[0], s.ends[1])
		s.loses(w)
		s.l.Cut(errors.New("it was cut"))
	case CrashProc, FailLate, CrashNode, CrashServer, PluginCrash, DrainPlugin, UndrainPlugin, LoseHost, NoMPI, FailLauncher, FailEarly: // these do not concern links
	}
}

// target picks the link that is harmed. Where links are resumable most cuts hit those, because any
// other cut may end the job. Otherwise every fourth hits a link between two procs.
func (w *Simulation) target(f Fault, alive []*observedLink) *observedLink {
	wanted, i := func(s *observedLink) bool { return s.resumes }, f.Target
	if eighth := f.Target % 8; f.Kind == Stall || eighth == 0 {
		wanted = func(*observedLink) bool { return true }
	} else if w.cfg.Resume == nil && (eighth == 2 || eighth == 4) {
		wanted, i = func(s *observedLink) bool { return s.is(AtProc, AtProc) }, f.Target/8
	}
	if slices.ContainsFunc(alive, wanted) {
		alive = slices.DeleteFunc(slices.Clone(alive), func(s *observedLink) bool { return !wanted(s) })
	}
	return alive[i%len(alive)]
}

// strike records a fault of a link that silences the endpoints in mute.
func (w *Simulation) strike(f Fault, s *observedLink, mute ...Endpoint) {
	if s.resumes {
		w.k.Tracef("%s of %s", f.Kind, s.l.Name())
		w.met[f.Kind]++
		return
	}
	if s.tree { // each machine below waits for an explanation of the loss
		w.stalls += settles(w)
	}
	if s.is(AtClient, AtServer) {
		w.sites[s.ends[0].Number].severed = true
	}
	deadly := false
	for _, e := range mute {
		deadly = deadly || w.needs(f.Kind, s, e)
	}
	w.hit(f, s.l.Name(), deadly)
	w.hits[len(w.hits)-1].waits = s.is(AtProc, AtAgent)
}

func (w *Simulation) cut(l *kernel.Link) {
	if w.cfg.Observer != nil {
		w.cfg.Observer.Cut(l)
	}
}

// loses tells the observer that bytes of a link may be lost, if the observer knows the link.
func (s *observedLink) loses(w *Simulation) {
	switch {
	case s.resumes || s.tree:
	case s.proof != nil && !s.proof.told:
		s.proof.cut = true
	default:
		w.cut(s.shown)
	}
}

// endsWithServer reports whether the end of the server ends the job: a site is starting, or cannot
// go on without it, or has been told why it ends. lost says that only connections are lost; sites
// that tell each other of failures then go on.
func endsWithServer(w *Simulation, lost bool) bool {
	_, starting := w.server.m.Deadline()
	return slices.ContainsFunc(w.sites, func(s *site) bool {
		return !s.left && (starting || tied(s) || !lost && !s.severed)
	})
}

// needs reports whether the job cannot end in order if nothing more comes from an end of a link,
// and whether that shows at once. In doubt it reports that the job can: a direct link may not be
// needed any more, a channel may not be in use yet.
func (w *Simulation) needs(kind FaultKind, s *observedLink, from Endpoint) bool {
	switch {
	case s.tree:
		return false
	case s.is(AtClient, AtServer):
		if kind == HalfClose && from.Kind == AtServer {
			return false // the site may leave before it notices the half-closed link
		}
		return !w.sites[s.ends[0].Number].left && endsWithServer(w, !slices.ContainsFunc(w.sites, tied))
	case s.is(AtProc, AtAgent):
		if kind == HalfClose || s.l.Ends[1].HasEnd() {
			return false // the proc notices the half-closed link only when it sends
		}
		p := w.procs[s.ends[0].Number]
		// The proc may finish without using the link, above all if it needs no messages for that.
		return p != nil && !p.s.left && !p.ending && p.h.board == nil && p.h.sw.linked(p.rank)
	case s.is(AtAgent, AtAgent):
		if w.cfg.OnDemand && s.proof != nil && (s.proof.busy[0] || s.proof.busy[1]) {
			return false // the channel is dialled again
		}
		h := w.hosts[wire.HostRank(from.Number)]
		peer := w.hosts[wire.HostRank(s.peer(from).Number)]
		return h != nil && peer != nil && h.sw != nil && peer.sw != nil && !h.fini()
	}
	return false
}

type observedLink struct {
	l       *kernel.Link
	shown   *kernel.Link // the link that the observer sees: l, or the resumable link over it
	ends    [2]Endpoint
	resumes bool     // another link will take its place
	tree    bool     // the link is between machines of one site: ends is not used
	proof   *proving // nil: the observer learns of the link at once
}

func (s *observedLink) is(a, b EndpointKind) bool { return s.ends[0].Kind == a && s.ends[1].Kind == b }

func (s *observedLink) peer(e Endpoint) Endpoint {
	if s.ends[0] == e {
		return s.ends[1]
	}
	return s.ends[0]
}
