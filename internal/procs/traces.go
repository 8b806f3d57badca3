package procs

import (
	"github.com/openimpi/impi/internal/wireup"
)

// cutTrace is a trace file that lacks some of its proc's packets.
type cutTrace struct {
	who ProcID
	wireup.TruncatedTrace
	reason string
}

func (s *Set) traceCut(p *Proc, m wireup.Message) {
	c := cutTrace{who: p.Who(), TruncatedTrace: *m.Cut, reason: m.Reason}
	s.mu.Lock()
	s.cuts = append(s.cuts, c)
	s.mu.Unlock()
	text := "a trace is cut: the job goes on"
	if c.Bytes == 0 {
		text = "a trace cannot be written: the job goes on"
	}
	s.warnOfCutTrace(text, c)
}

func (s *Set) warnOfCutTrace(text string, c cutTrace) {
	s.Log.Warn(text, "proc", c.who, "file", c.File, "bytes", c.Bytes, "reason", c.reason)
}

// WarnOfCutTraces logs at the end which traces are incomplete.
func (s *Set) WarnOfCutTraces() {
	s.mu.Lock()
	cuts := s.cuts
	s.mu.Unlock()
	for _, c := range cuts {
		s.warnOfCutTrace("a trace is incomplete", c)
	}
}
