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

// tracer makes a link show its packets; peer is message.NoPeer for the agent's.
type tracer func(l link.Link, name string, peer message.Peer) link.Link

// traced wraps l where the operator wants to see its packets.
func (p *process) traced(l link.Link, name string, peer message.Peer) link.Link {
	if p.job.Trace == "" {
		return l
	}
	if p.tracer == nil {
		p.tracer = p.newTracer()
	}
	return p.tracer(l, name, peer)
}

// newTracer opens the file, whose name tells how packets are to be written. A
// trace that is impossible does not end the job.
func (p *process) newTracer() tracer {
	f, err := os.OpenFile(p.job.Trace, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "impi: rank %d: no trace: %v\n", p.job.Rank, err)
		return func(l link.Link, _ string, _ message.Peer) link.Link { return l }
	}
	if filepath.Ext(p.job.Trace) != ".pcapng" {
		return func(l link.Link, name string, _ message.Peer) link.Link {
			return trace.Link(l, name, f, trace.Dialect(p.job.Dialect))
		}
	}
	capture := trace.NewCapture(f, fmt.Sprintf("rank %d of %s, pid %d", p.job.Rank, p.job.Name, os.Getpid()))
	return func(l link.Link, name string, peer message.Peer) link.Link {
		other := trace.NoRank
		if peer != message.NoPeer {
			other = int(peer)
		}
		return capture.Link(l, name, trace.Ranks(p.rankOf), trace.Dialect(p.job.Dialect), trace.Between(int(p.job.Rank), other))
	}
}

// rankOf gives the world rank of a proc of this job.
func (p *process) rankOf(proc wire.Proc) (rank int, known bool) {
	peer, known := p.roster.directory.Find(proc)
	return int(peer), known
}
