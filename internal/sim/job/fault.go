package job

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// FaultKind is what goes wrong.
type FaultKind string

// The kinds of fault. Those up to Crash* end the job; Stall and PluginCrash must
// not.
const (
	CrashProc   FaultKind = "crash-proc"   // Target is a world rank
	CrashNode   FaultKind = "crash-node"   // Target is a client rank
	CrashServer FaultKind = "crash-server" // Target is not used
	CutLink     FaultKind = "cut"          // Target picks one of the links that exist
	Stall       FaultKind = "stall"        // the same
	PluginCrash FaultKind = "crash-plugin" // Target is a client rank
)

// Kinds lists all kinds of fault.
var Kinds = []FaultKind{CrashProc, CrashNode, CrashServer, CutLink, Stall, PluginCrash}

// Deadly tells whether the job cannot go on after a fault of this kind.
func (k FaultKind) Deadly() bool { return k != Stall && k != PluginCrash }

// Fault is one thing that goes wrong.
type Fault struct {
	Kind   FaultKind
	At     time.Duration
	Target int
}

// String gives the fault in the form that ParseFault reads.
func (f Fault) String() string { return fmt.Sprintf("%s %v %d", f.Kind, f.At, f.Target) }

// ErrFault is wrapped by errors of ParseFault.
var ErrFault = errors.New("invalid fault")

// ParseFault reads a fault: kind, virtual time, target.
func ParseFault(s string) (Fault, error) {
	var f Fault
	var at string
	if _, err := fmt.Sscanf(s, "%s %s %d", &f.Kind, &at, &f.Target); err != nil {
		return f, fmt.Errorf("%w %q: write a kind, a time and a target: %w", ErrFault, s, err)
	}
	var err error
	if f.At, err = time.ParseDuration(at); err != nil || f.At < 0 || f.Target < 0 {
		return f, fmt.Errorf("%w %q: the time is a duration like 1.5ms, the target not negative", ErrFault, s)
	}
	if !slices.Contains(Kinds, f.Kind) {
		return f, fmt.Errorf("%w %q: the kinds are %v", ErrFault, s, Kinds)
	}
	return f, nil
}

// Plan has a fault happen. It must be called before Run.
func (w *World) Plan(f Fault) { w.k.After(f.At, func() { w.commit(f) }) }

func (w *World) commit(f Fault) {
	if w.over() {
		return
	}
	switch f.Kind {
	case CrashProc:
		if p := w.procs[f.Target%len(w.procs)]; p != nil && !p.task.Ended() {
			w.hit(f)
			p.crash()
		}
	case CrashNode:
		if s := w.sites[f.Target%len(w.sites)]; !s.done {
			w.hit(f)
			s.crash()
		}
	case CrashServer:
		if !w.server.ended {
			w.hit(f)
			w.server.crash()
		}
	case PluginCrash:
		w.hit(f)
		w.crashPlugin(w.sites[f.Target%len(w.sites)].rank)
	case CutLink, Stall:
		if len(w.links) == 0 {
			return
		}
		w.hit(f)
		l := w.links[f.Target%len(w.links)]
		if f.Kind == Stall {
			w.k.Note("stall of %s", l.Name())
			l.Stall(w.k.Between(0, 20*time.Millisecond))
			return
		}
		w.k.Note("cut of %s", l.Name())
		if w.cfg.Observer != nil {
			w.cfg.Observer.Cut(l)
		}
		l.Cut(errors.New("it was cut"))
	}
}

// hit notes that a fault has met something that had not ended.
func (w *World) hit(f Fault) {
	w.struck = w.struck || f.Kind.Deadly()
	w.hits[f.Kind]++
}
