package mpi

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
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
	f, err := os.OpenFile(p.job.Trace, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "impi: rank %d: no trace: %v\n", p.job.Rank, err)
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

// rankOf gives the world rank of a proc of this job.
func (p *process) rankOf(proc wire.Proc) (rank int, known bool) {
	peer, known := p.roster.directory.Find(proc)
	return int(peer), known
}
