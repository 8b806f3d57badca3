package worlds

import (
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// steps follows the roots through the steps of connecting: up to the fifth by what
// their nodes do, then by what they say to each other on their temporary link. The tag of
// those messages is the number of the step, and when one has been received the next step
// is to tell it to the others.
type steps struct {
	x       *execution
	at      map[int]int // by proc
	reached func(proc, step int)
}

// lastStep is that in which the temporary link is closed.
const lastStep = 16

// Step is of job.CallObserver.
func (s *steps) Step(who dynamic.Member, step int) { s.reach(s.x.procOf(who), step) }

func (s *steps) reach(proc, step int) {
	s.at[proc] = step
	s.reached(proc, step)
}

// Link is of job.CallObserver.
func (s *steps) Link(caller, opener dynamic.Member) kernel.Watcher {
	w := &callWatch{s: s, procs: [2]int{s.x.procOf(caller), s.x.procOf(opener)}}
	return w
}

// callWatch sees what two roots say to each other.
type callWatch struct {
	s     *steps
	procs [2]int
	sent  [2]packets // by end
	taken [2]packets // what that end has received
	wait  [2][]byte  // what it is still to receive
}

func endOf(e *kernel.End) int {
	if e == e.Link().Ends[0] {
		return 0
	}
	return 1
}

// Sent is of kernel.Watcher.
func (w *callWatch) Sent(from *kernel.End, data []byte) {
	i := endOf(from)
	w.wait[1-i] = append(w.wait[1-i], data...)
	w.sent[i].add(data, func(tag wire.Tag) {
		switch tag {
		case 0: // the introduction
		case 14:
			w.s.reach(w.procs[i], 13) // which is over
			fallthrough
		default:
			w.s.reach(w.procs[i], int(tag))
		}
	})
}

// Received is of kernel.Watcher.
func (w *callWatch) Received(to *kernel.End, n int) {
	i := endOf(to)
	data := w.wait[i][:n]
	w.wait[i] = w.wait[i][n:]
	w.taken[i].add(data, func(tag wire.Tag) {
		if tag == 0 {
			tag = 5
		}
		w.s.reach(w.procs[i], int(tag)+1)
	})
}

// Ended is of kernel.Watcher.
func (w *callWatch) Ended(from *kernel.End) { w.s.reach(w.procs[endOf(from)], lastStep) }

// packets finds the tags of messages in a stream.
type packets struct {
	head []byte
	data int // bytes of a packet that are to come
}

// add goes on with the stream.
func (p *packets) add(b []byte, tag func(wire.Tag)) {
	for len(b) > 0 {
		if n := min(p.data, len(b)); n > 0 {
			p.data, b = p.data-n, b[n:]
			continue
		}
		n := min(wire.HeaderSize-len(p.head), len(b))
		p.head, b = append(p.head, b[:n]...), b[n:]
		if len(p.head) < wire.HeaderSize {
			return
		}
		var h wire.Packet
		wire.Dialect(0).Header(p.head, &h)
		p.head = p.head[:0]
		if h.Type.HasData() {
			p.data = int(h.Len)
			tag(h.Tag)
		}
	}
}
