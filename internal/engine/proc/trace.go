package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/transports/support/trace"
)

type tracer struct {
	// link wraps a link so that its packets are traced; peer is message.NoPeer for the agent's.
	link func(l link.Link, name string, peer message.Peer) link.Link
	Step func(trace.Step)
	runs map[string]int // number of traced runs of procedures, by kind
}

type tracing struct {
	job       *wireup.Job
	directory *message.Directory
	node      machine.Node // nil: there is none
	tracer    *tracer      // nil until something is to be traced
}

// Traced wraps l if the operator has asked for a trace of its packets.
func (tr *tracing) Traced(l link.Link, name string, peer message.Peer) link.Link {
	if t := tr.Tracing(); t != nil {
		return t.link(l, name, peer)
	}
	return l
}

// Tracing returns the tracer, or nil if nothing is traced.
func (tr *tracing) Tracing() *tracer {
	if tr.job.Trace != "" && tr.tracer == nil {
		tr.tracer = tr.newTracer()
		tr.tracer.runs = make(map[string]int)
	}
	return tr.tracer
}

// newTracer opens the trace file, whose name says in which form packets are written. If that fails,
// the job goes on without a trace.
func (tr *tracing) newTracer() *tracer {
	// Without O_NONBLOCK the job would wait for a reader of a pipe. Writes wait all the same.
	file, err := os.OpenFile(tr.job.Trace, os.O_CREATE|os.O_APPEND|os.O_WRONLY|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ENXIO) {
		err = fmt.Errorf("%s is a pipe that nobody reads: %w", tr.job.Trace, err)
	}
	f := &TraceFile{W: file, Cut: tr.traceCut}
	if err != nil {
		tr.traceCut(0, err)
		return &tracer{
			link: func(l link.Link, _ string, _ message.Peer) link.Link { return l },
			Step: func(trace.Step) {},
		}
	}
	if filepath.Ext(tr.job.Trace) != ".pcapng" {
		return &tracer{
			link: func(l link.Link, name string, _ message.Peer) link.Link {
				return trace.Link(l, name, f, trace.Dialect(tr.job.Dialect))
			},
			Step: func(s trace.Step) { s.Show(f) },
		}
	}
	capture := trace.NewCapture(f, fmt.Sprintf("rank %d of %s, pid %d", tr.job.Rank, tr.job.Name, os.Getpid()))
	return &tracer{
		link: func(l link.Link, name string, peer message.Peer) link.Link {
			other := trace.NoRank
			if peer != message.NoPeer {
				other = int(peer)
			}
			return capture.Link(l, name, trace.Ranks(tr.rankOf), trace.Dialect(tr.job.Dialect), trace.Between(int(tr.job.Rank), other))
		},
		Step: func(s trace.Step) { capture.Step(int(tr.job.Rank), s) },
	}
}

// CreateRegularFile creates or empties a file, and fails if path is no regular file, without
// waiting for a reader of a pipe, or if another process does the same.
func CreateRegularFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err == nil {
		err = wireup.Claim(file)
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// TraceFile is the file of a trace. After a failure nothing more is written, so that the part
// written before has no holes.
type TraceFile struct {
	mu      sync.Mutex
	W       io.Writer
	written int64
	err     error
	Cut     func(written int64, cause error) // called once, at the failure
}

// Write writes b. If that fails, perhaps after a part of b, nothing more is written.
func (f *TraceFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.W.Write(b)
	f.written += int64(n)
	if err != nil {
		f.err = err
		f.Cut(f.written, err)
	}
	return n, err
}

func (tr *tracing) traceCut(written int64, cause error) { tr.fileCut(tr.job.Trace, written, cause) }

func (tr *tracing) fileCut(file string, written int64, cause error) {
	m := wireup.Message{Kind: wireup.KindTrace, Reason: cause.Error(), Cut: &wireup.TruncatedTrace{File: file, Bytes: written}}
	if tr.node == nil || tr.node.Send(m) != nil {
		fmt.Fprintf(os.Stderr, "impi: rank %d: the trace %s ends after %d bytes: %v\n", tr.job.Rank, file, written, cause)
	}
}

func (tr *tracing) rankOf(proc wire.Proc) (rank int, known bool) {
	peer, known := tr.directory.Find(proc)
	return int(peer), known
}

// TraceSteps is a run of numbered steps that procs take together, such as connecting, as a trace
// shows it: each step appears once this proc has taken it, so that a proc waits in the step after
// the last one shown. It is nil, and costs nothing, if nothing is traced.
type TraceSteps struct {
	t    *tracer
	name string
}

// The kinds of procedures in a trace. An opened port is shown as a step of accepting.
const (
	ToAccept  = "accept"
	ToConnect = "connect"
	ToCreate  = "intercomm_create" // of members of several worlds
	ToSpawn   = "spawn"
)

// Procedure begins a run of a procedure. The runs of each kind are numbered. The process is locked.
func (tr *tracing) Procedure(kind string) *TraceSteps {
	t := tr.Tracing()
	if t == nil {
		return nil
	}
	t.runs[kind]++
	return &TraceSteps{t, fmt.Sprintf("%s#%d", kind, t.runs[kind])}
}

// TraceStep records in the trace that the proc has taken a step, with the text that what returns.
func (x *TraceSteps) TraceStep(step int, what func() string) {
	if x != nil {
		x.t.Step(trace.Step{Procedure: x.name, Number: step, Text: what()})
	}
}

// TraceText records a text that belongs to no step.
func (x *TraceSteps) TraceText(what func() string) { x.TraceStep(trace.NoStep, what) }

// TraceEnd records how the procedure has ended.
func (x *TraceSteps) TraceEnd(err error, made *Comm) {
	x.TraceText(func() string {
		if err != nil {
			return fmt.Sprintf("failed with %v: %v", ErrorClass(err), err)
		}
		return fmt.Sprintf("done, the communicator has context %d", made.Context())
	})
}

// PortLabel returns the label of a port in a trace: not its name, with which any proc could
// connect.
func PortLabel(name dynamic.WorldID) string { return "port " + name.String()[:8] }

// PortLabelOf is PortLabel for the port's whole name.
func PortLabelOf(text string) string {
	port, err := dynamic.ParsePort(text)
	if err != nil {
		return "a port without a name"
	}
	return PortLabel(port.Name())
}
