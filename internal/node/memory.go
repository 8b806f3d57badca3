package node

import (
	"slices"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
)

// Links through memory: their handle tells of nothing but to who has called Arm, so
// that the loop looks at them by itself while it polls, and arms them for each
// sleep. A kernel's socket needs neither.

// unkept tells whether the readiness of l is not kept by the kernel.
func unkept(l link.Link) bool {
	_, kernel := l.(transports.Socket)
	return !kernel
}

// lookAround reads the links through memory, and warms those that had something.
func (s *packetSwitch) lookAround() (progress bool) {
	for _, p := range s.unkept {
		if p.ended != nil || !p.memory || slices.Contains(s.hot[:], p) || !s.read(p) {
			continue
		}
		progress = true
		if p.ended == nil {
			s.warm(p)
		}
	}
	if progress {
		s.output()
	}
	return progress
}

// arm readies the links through memory for a sleep. False: there is something to
// do first, which was done.
func (s *packetSwitch) arm() bool {
	ready := true
	for _, p := range s.unkept {
		if p.ended != nil || !p.link.Arm(p.interest) {
			continue
		}
		ready = false
		s.read(p)
		if p.ended == nil {
			s.flush(p)
		}
	}
	if !ready {
		s.output()
	}
	return ready
}

// forget is for a link that has ended.
func (s *packetSwitch) forget(p *port) {
	for i := range s.hot {
		if s.hot[i] == p {
			s.hot[i] = nil
		}
	}
	if i := slices.Index(s.unkept, p); i >= 0 {
		s.unkept = slices.Delete(slices.Clone(s.unkept), i, i+1) // somebody may be going through it
	}
}
