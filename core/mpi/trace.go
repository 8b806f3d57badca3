package mpi

import (
	"fmt"
	"os"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports/trace"
)

// traced wraps l where the operator wants to see its packets.
func (p *process) traced(l link.Link, name string) link.Link {
	if p.job.Trace == "" {
		return l
	}
	f, err := os.OpenFile(p.job.Trace, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "impi: rank %d: no trace: %v\n", p.job.Rank, err)
		return l
	}
	return trace.Link(l, name, f)
}
