// Package coll compiles collective operations to schedules: rounds of sends, receives and local
// work over byte buffers. A Planner knows the communicator and writes a Schedule; whoever owns the
// links executes it. Nothing in this package communicates or waits.
//
// Between clients the messages have the tags and the order that IMPI prescribes (IMPI ch.4,
// Collective tags). Its text for some operations could not be had; theirs are the project's own
// profile. Inside a client the algorithms are our own, with tags above 1000 that no foreign client
// ever sees.
package coll

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// Action is the kind of a Step.
type Action uint8

// The actions. Send and Recv are messages: the executor starts them in the order of the steps and
// does not wait for one before the next. The same holds for Joint, which all members of the client
// execute. The others are local work, which Run does when their turn comes.
const (
	Send   Action = iota // sends Src to Peer
	Recv                 // receives exactly len(Dst) bytes from Peer
	Joint                // does Phase with the client's own MPI
	Reduce               // Dst = Src Op Dst, of Count elements
	Copy                 // Dst = Src
	Encode               // Dst = Src in the form Rep
	Decode               // Dst = native form of Src, which is in the form Rep
)

func (a Action) String() string {
	return [...]string{"send", "recv", "phase", "reduce", "copy", "encode", "decode"}[a]
}

// Step is one action of a process. The slices belong to the caller's buffers or to the schedule's
// scratch memory.
type Step struct {
	Action  Action
	Phase   Phase // used by Joint
	Kind    datatype.Kind
	Rep     datatype.Representation
	Remote  bool // Peer is a rank of the remote group of an intercommunicator
	Peer    wire.CommRank
	Tag     wire.Tag
	Context wire.ContextID
	Count   int
	Op      *datatype.Op
	Src     []byte
	Dst     []byte
}

// Local reports whether the step is local work, which Run does.
func (t *Step) Local() bool { return t.Action > Joint }

// Run does the local work of a step.
func (t *Step) Run() error {
	switch t.Action {
	case Reduce:
		return t.Op.Apply(t.Src, t.Dst, t.Kind, t.Count)
	case Copy:
		copy(t.Dst, t.Src)
	case Encode:
		return t.Rep.Encode(t.Dst, t.Src, t.Kind, t.Count)
	case Decode:
		return t.Rep.Decode(t.Dst, t.Src, t.Kind, t.Count)
	case Send, Recv, Joint: // done by the executor
	}
	return nil
}

// Schedule is one collective operation of one process, as rounds of steps. The
// zero Schedule is ready to be planned into. It keeps its memory over Reset, so
// that planning into a used one allocates nothing.
//
// To execute: call Next until it returns no steps; do the steps of a round in
// order, starting messages and running local work; wait for the messages of the
// round before the next one.
type Schedule struct {
	steps       []Step
	ends        []int // ends of the finished rounds, as indexes in steps
	round       int   // index of the next round to execute
	hasMessages bool  // the open round has messages
	late        []Step
	more        func() error
	scratch     arena
	numbers     []int

	encoded Step // the last Encode of the open round
}

// Reset forgets all steps, and the references to the buffers of the last operation.
func (s *Schedule) Reset() {
	clear(s.steps)
	s.steps, s.ends, s.round = s.steps[:0], s.ends[:0], 0
	clear(s.late)
	s.late, s.hasMessages, s.more, s.encoded = s.late[:0], false, nil, Step{}
	s.scratch.reset()
	s.numbers = s.numbers[:0]
}

// Next returns the steps of the next round, none after the last. The messages of earlier rounds
// have completed. The slice is good until the next call.
//
// Some operations can plan a round only when the one before it has brought lengths; the error wraps
// ErrCount if a member sent a length that no block can have.
func (s *Schedule) Next() ([]Step, error) {
	for {
		if s.round < len(s.ends) {
			start := 0
			if s.round > 0 {
				start = s.ends[s.round-1]
			}
			s.round++
			return s.steps[start:s.ends[s.round-1]], nil
		}
		if s.more == nil {
			return nil, nil
		}
		more := s.more
		s.more = nil
		if err := more(); err != nil {
			return nil, err
		}
		s.finish()
	}
}

func (s *Schedule) add(t Step) {
	if t.Local() {
		if t.Action != Encode {
			s.encoded = Step{}
		}
	} else {
		s.hasMessages = true
	}
	s.steps = append(s.steps, t)
}

// afterwards adds local work that is done once the open round's messages have completed.
func (s *Schedule) afterwards(t Step) { s.late = append(s.late, t) }

// wait ends the open round: what is added next happens after its messages.
func (s *Schedule) wait() {
	if !s.hasMessages {
		return
	}
	s.close()
	s.steps = append(s.steps, s.late...)
	clear(s.late)
	s.late = s.late[:0]
}

func (s *Schedule) close() {
	s.ends = append(s.ends, len(s.steps))
	s.hasMessages = false
	s.encoded = Step{}
}

func (s *Schedule) finish() {
	s.wait()
	if n := len(s.ends); n == 0 && len(s.steps) > 0 || n > 0 && s.ends[n-1] < len(s.steps) {
		s.close()
	}
}

func (s *Schedule) copy(dst, src []byte) {
	if len(src) > 0 && &dst[0] != &src[0] {
		s.add(Step{Action: Copy, Dst: dst, Src: src})
	}
}

// ints returns n numbers with undefined values, valid until Reset.
func (s *Schedule) ints(n int) []int {
	if cap(s.numbers)-len(s.numbers) < n {
		s.numbers = make([]int, 0, max(n, 2*cap(s.numbers)))
	}
	from := len(s.numbers)
	s.numbers = s.numbers[:from+n]
	return s.numbers[from : from+n : from+n]
}

func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
