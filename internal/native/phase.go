package native

import (
	"runtime"
	"unsafe"
)

// Comm is a communicator of the site's MPI.
type Comm int32

// Phase is a collective operation of a Comm. Its numbers are those of coll.Phase.
type Phase struct {
	What     uint8
	Type, Op int // of reductions
	Root     int // rank in the Comm
	Count    int // bytes of a block, or elements of reductions
	In, Out  []byte
	Failed   error // what went wrong for this member before the phase, for the others: ErrLonger and the like, or any error

	number request
	pin    runtime.Pinner
	done   bool
	err    error
}

// Begin begins a phase, which no goroutine may change until it is Done.
func (h *Links) Begin(c Comm, p *Phase) error {
	if h.err != nil {
		return h.err
	}
	if len(p.In) > 0 {
		p.pin.Pin(&p.In[0])
	}
	if len(p.Out) > 0 {
		p.pin.Pin(&p.Out[0])
	}
	p.number, p.err = h.lib.begin(c, p)
	p.done = false
	if p.err != nil || p.number == none {
		p.finish()
		return p.err
	}
	h.phases = append(h.phases, p)
	return nil
}

// AwaitPhase makes the Links wait for a phase that C has begun, or records how the phase failed.
func (h *Links) AwaitPhase(number, failed int32, p *Phase) error {
	if h.err != nil {
		return h.err
	}
	p.number, p.done, p.err = number, false, nil
	if failed != 0 {
		p.done, p.err = true, h.lib.failure(failed)
		return p.err
	}
	h.phases = append(h.phases, p)
	return nil
}

func (p *Phase) finish() {
	p.pin.Unpin()
	p.done = true
}

// Done reports whether the phase is over, and the error if it has failed.
func (p *Phase) Done() (bool, error) { return p.done, p.err }

func (h *Links) lookAtPhases() (news bool) {
	kept := h.phases[:0]
	for _, p := range h.phases {
		done, err := h.lib.test(p.number)
		if !done {
			kept = append(kept, p)
			continue
		}
		p.err = err
		p.finish()
		news = true
	}
	clear(h.phases[len(kept):])
	h.phases = kept
	return news
}

func address(b []byte) unsafe.Pointer {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Pointer(&b[0])
}

// Open makes a communicator of ranks of the site. All of them call it, at a time when none of them
// needs anything else from another one before its call. tag is one that no other call has at that
// time.
func (l *Library) Open(ranks []int32, tag int) (Comm, error) { return l.open(ranks, tag) }

// CloseComm frees a communicator, together with its other members.
func (l *Library) CloseComm(c Comm) error { return l.close(c) }
