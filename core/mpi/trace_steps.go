package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/transports/trace"
)

// procedure is a run of what procs do together by numbered steps, as a trace shows it:
// each step once this proc has taken it, so that the one after the last that is shown is
// where it waits. It is nil, and costs nothing, where the operator wants no trace.
type procedure struct {
	t    *tracer
	name string
}

// What procedures are called in a trace. An open port is the accepting side's, of
// whatever number.
const (
	toAccept  = "accept"
	toConnect = "connect"
	toCreate  = "intercomm_create" // of members of several worlds
	toSpawn   = "spawn"
)

// procedure begins a run of a procedure, of which each kind has its own numbers. The
// process is locked.
func (p *process) procedure(kind string) *procedure {
	t := p.tracing()
	if t == nil {
		return nil
	}
	t.runs[kind]++
	return &procedure{t, fmt.Sprintf("%s#%d", kind, t.runs[kind])}
}

// took shows that the proc has taken a step, and what came of it.
func (x *procedure) took(step int, what func() string) {
	if x != nil {
		x.t.step(trace.Step{Procedure: x.name, Number: step, Text: what()})
	}
}

// says shows what is no step.
func (x *procedure) says(what func() string) { x.took(trace.NoStep, what) }

// ends shows how the procedure has ended.
func (x *procedure) ends(err error, made *Comm) {
	x.says(func() string {
		if err != nil {
			return fmt.Sprintf("failed with %v: %v", ErrorClass(err), err)
		}
		return fmt.Sprintf("done, the communicator has context %d", made.Context())
	})
}

// portLabel is how a trace calls a port: not by its name, which is as good as a key.
func portLabel(name dynamic.World) string { return "port " + name.String()[:8] }

// portLabelOf is portLabel by the port's own name.
func portLabelOf(text string) string {
	port, err := dynamic.ParsePort(text)
	if err != nil {
		return "a port without a name"
	}
	return portLabel(port.Name())
}
