package telemetry

import (
	"fmt"

	"github.com/hashicorp/go-hclog"
)

// Limits of what a log adds to a trace.
const (
	mostFaults     = 1000 // spans
	mostAttributes = 16   // of each span
)

// Faults makes spans of the lines of a log that report a fault, or that a fault is over.
type Faults struct {
	Tracer *Tracer
	Of     *Span // parent of the spans
	Tells  func(level hclog.Level, message string) bool

	told int // guarded by the lock of the log, which calls Accept
}

// Accept handles a line. It is called by hclog.
func (f *Faults) Accept(name string, level hclog.Level, message string, args ...any) {
	if !f.Tells(level, message) || f.told >= mostFaults {
		return
	}
	f.told++
	pairs := []any{"log.severity", level.String(), "log.name", name}
	for i := 0; i+1 < len(args) && i < 2*mostAttributes; i += 2 {
		pairs = append(pairs, "impi."+fmt.Sprint(args[i]), args[i+1])
	}
	f.Tracer.RecordEvent(message, f.Of, level >= hclog.Warn, Attributes(pairs...)...)
}
