package window

import (
	"slices"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/wireup"
)

// awaited is what a goroutine waits for in a window, for those who ask. The zero value is that
// operations which this proc has begun are complete here.
type awaited struct {
	what    string        // one of the names of package wireup
	notices *rma.Arrivals // waits for notices of the ranks in from
	from    []int
	asked   []question // waits for the answers to these
	number  uint64     // of the wait
}

type waits struct {
	list []awaited
	last uint64
}

func (w *waits) begin(x awaited) awaited {
	w.last++
	x.number = w.last
	w.list = append(w.list, x)
	return x
}

func (w *waits) end(x awaited) {
	w.list = slices.DeleteFunc(w.list, func(y awaited) bool { return y.number == x.number })
}

// Waits implements proc.Window. Operations under way, waited for or not, count as waits for the
// other procs.
func (w *Win) Waits(wants func(what string, of message.Peer)) {
	for i := range w.server.waits.list {
		switch x := &w.server.waits.list[i]; {
		case x.notices != nil:
			for _, r := range x.notices.AllMissing(x.from) {
				wants(x.what, w.peer(r))
			}
		case x.asked != nil:
			for _, q := range x.asked {
				if q.pends() {
					wants(x.what, w.peer(q.rank))
				}
			}
		case x.what != "":
			wants(x.what, message.NoPeer)
		}
	}
	for r := range w.origin.targets {
		if slices.ContainsFunc(w.origin.targets[r].open, (*access).pends) {
			wants(wireup.WantsWindow, w.peer(r))
		}
	}
}

// pends reports whether something of a request is to come or to leave. It changes nothing, unlike
// Done.
func (a *access) pends() bool {
	if a.ended {
		return false
	}
	return a.answer != nil && !a.answer.Done() || slices.ContainsFunc(a.sends[:], func(r *message.Request) bool { return r != nil && !r.Done() })
}

// Contended implements proc.Window.
func (w *Win) Contended() (holders, waiters []message.Peer) {
	h, q := w.server.locks.Contended()
	for _, r := range h {
		holders = append(holders, w.peer(r))
	}
	for _, r := range q {
		waiters = append(waiters, w.peer(r))
	}
	return holders, waiters
}
