package mpi

import (
	"slices"

	"github.com/openimpi/impi/core/message"
)

// backgroundOp is something under way that goes on in whichever call of MPI the
// program makes. The process is locked.
type backgroundOp interface {
	// carryOn goes as far as it can without waiting, and tells whether it is over.
	carryOn() (over bool)
}

// dispatch begins a background operation.
func (p *process) dispatch(e backgroundOp) {
	if !e.carryOn() {
		p.background = append(p.background, e)
	}
}

// carryOn carries all background operations on after something has arrived. One may end others,
// or begin some.
func (p *process) carryOn() {
	for i := 0; i < len(p.background); {
		e := p.background[i]
		if !e.carryOn() {
			i++
			continue
		}
		if i = slices.Index(p.background, e); i >= 0 {
			p.background = slices.Delete(p.background, i, i+1)
		} else {
			i = 0
		}
	}
}

// introduced is the first message of a guest.
type introduced struct {
	r *message.Request
	b [8]byte
}

// temporary is who is at the other end of a temporary link.
type temporary interface {
	// gone says that the link is closed. The process is locked.
	gone()
}
