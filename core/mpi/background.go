package mpi

import "slices"

// errand is something under way that goes on in whichever call of MPI the
// program makes. The process is locked.
type errand interface {
	// carryOn goes as far as it can without waiting, and tells whether it is over.
	carryOn() (over bool)
}

// dispatch begins an errand.
func (p *process) dispatch(e errand) {
	if !e.carryOn() {
		p.errands = append(p.errands, e)
	}
}

// carryOn carries all errands on after something has arrived. One may end others,
// or begin some.
func (p *process) carryOn() {
	for i := 0; i < len(p.errands); {
		e := p.errands[i]
		if !e.carryOn() {
			i++
			continue
		}
		if i = slices.Index(p.errands, e); i >= 0 {
			p.errands = slices.Delete(p.errands, i, i+1)
		} else {
			i = 0
		}
	}
}
