package procs

import (
	"github.com/openimpi/impi/internal/wireup"
)

// Joined is a proc that a process manager has started, and that has connected to the node.
type Joined struct {
	Control *wireup.Conn // closed by the set
	PID     int
	AppNum  int
}

func (s *Set) adopt(p *Proc) (err error) {
	j := s.Joined[len(s.all)]
	p.control, p.AppNum = j.Control, j.AppNum
	p.os, err = s.adopter.Watch(j.PID)
	return err
}
