package mpi

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports/trace"
)

// tracer shows what a proc does.
type tracer struct {
	// link makes a link show its packets; peer is message.NoPeer for the agent's.
	link func(l link.Link, name string, peer message.Peer) link.Link
	step func(trace.Step)
	runs map[string]int // of procedures, by kind
}

// traced wraps l where the operator wants to see its packets.
func (p *process) traced(l link.Link, name string, peer message.Peer) link.Link {
	if t := p.tracing(); t != nil {
		return t.link(l, name, peer)
	}
	return l
}

// tracing gives what shows the proc's doings; nil if nobody wants to see them.
func (p *process) tracing() *tracer {
	if p.job.Trace != "" && p.tracer == nil {
		p.tracer = p.newTracer()
		p.tracer.runs = make(map[string]int)
	}
	return p.tracer
}

// newTracer opens the file, whose name tells how packets are to be written. A
// trace that is impossible does not end the job.
func (p *process) newTracer() *tracer {
	file, err := os.OpenFile(p.job.Trace, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	f := &traceFile{w: file, cut: p.traceCut}
	if err != nil {
		p.traceCut(0, err)
		return &tracer{
			link: func(l link.Link, _ string, _ message.Peer) link.Link { return l },
			step: func(trace.Step) {},
		}
	}
	if filepath.Ext(p.job.Trace) != ".pcapng" {
		return &tracer{
			link: func(l link.Link, name string, _ message.Peer) link.Link {
				return trace.Link(l, name, f, trace.Dialect(p.job.Dialect))
			},
			step: func(s trace.Step) { s.Show(f) },
		}
	}
	capture := trace.NewCapture(f, fmt.Sprintf("rank %d of %s, pid %d", p.job.Rank, p.job.Name, os.Getpid()))
	return &tracer{
		link: func(l link.Link, name string, peer message.Peer) link.Link {
			other := trace.NoRank
			if peer != message.NoPeer {
				other = int(peer)
			}
			return capture.Link(l, name, trace.Ranks(p.rankOf), trace.Dialect(p.job.Dialect), trace.Between(int(p.job.Rank), other))
		},
		step: func(s trace.Step) { capture.Step(int(p.job.Rank), s) },
	}
}

// traceFile is the file of a trace. After a failure nothing more is written, so that
// what is there has no holes.
type traceFile struct {
	mu      sync.Mutex
	w       io.Writer
	written int64
	err     error
	cut     func(written int64, cause error) // called once, at the failure
}

// Write writes b, all or a part of it that is the last.
func (f *traceFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.w.Write(b)
	f.written += int64(n)
	if err != nil {
		f.err = err
		f.cut(f.written, err)
	}
	return n, err
}

// traceCut tells the node, which says so now and at the end.
func (p *process) traceCut(written int64, cause error) {
	m := wireup.Message{Kind: wireup.KindTrace, Reason: cause.Error(), Cut: &wireup.CutTrace{File: p.job.Trace, Bytes: written}}
	if p.control == nil || p.control.Send(m) != nil {
		fmt.Fprintf(os.Stderr, "impi: rank %d: the trace %s ends after %d bytes: %v\n", p.job.Rank, p.job.Trace, written, cause)
	}
}

// rankOf gives the world rank of a proc of this job.
func (p *process) rankOf(proc wire.Proc) (rank int, known bool) {
	peer, known := p.roster.directory.Find(proc)
	return int(peer), known
}
