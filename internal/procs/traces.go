package procs

import (
	"github.com/openimpi/impi/internal/wireup"
)

// traceCut says once that a file lacks some of a proc's packets or calls.
func (s *Set) traceCut(p *Proc, m wireup.Message) {
	text, remedy := "a trace is cut: the job goes on", "make room where it is, or trace less"
	if m.Cut.Bytes == 0 {
		text, remedy = "a trace cannot be written: the job goes on", "write the name of a regular file in a folder that is there and that procs may write to; with %p in the name, the process ID of the node, jobs that run side by side have files of their own"
	}
	s.Log.Warn(text, "proc", p.ID(), "file", m.Cut.File, "bytes", m.Cut.Bytes, "reason", m.Reason, "remedy", remedy)
}
