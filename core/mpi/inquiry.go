package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/wireup"
)

// inquiry is what the node was asked and has not answered yet. The process's lock
// guards it.
type inquiry struct {
	answer *delivery
	port   dynamic.World // that it is about, if it is to wait for a caller
}

// ask asks the node for something and waits for the answer, which may be a
// refusal. The process is locked.
func (p *process) ask(m wireup.Message, port dynamic.World) (delivery, error) {
	p.questions++
	number := p.questions
	m.Meeting.Request = number
	q := &inquiry{port: port}
	if p.asking == nil {
		p.asking = make(map[uint64]*inquiry)
	}
	p.asking[number] = q
	defer delete(p.asking, number)
	if err := p.control.Send(m); err != nil {
		return delivery{}, err
	}
	for q.answer == nil && p.failure == nil {
		p.turn()
	}
	if q.answer == nil {
		return delivery{}, p.failure
	}
	return *q.answer, refusal(&q.answer.msg)
}

// answered takes the answer to a inquiry; one that nobody has asked is of no use.
func (p *process) answered(d delivery) {
	var q *inquiry
	if d.msg.Meeting != nil {
		q = p.asking[d.msg.Meeting.Request]
	}
	if q == nil || q.answer != nil {
		d.close()
		return
	}
	q.answer = &d
	p.rouse()
}

// refusal is the error that an answer is. One with a link says why it is by that data
// plane.
func refusal(m *wireup.Message) error {
	switch {
	case m.Meeting.Class == 0: // with a link, the reason is that of its data plane
		return nil
	case mpierr.Class(m.Meeting.Class) == mpierr.Port:
		return fmt.Errorf("%w: %s", ErrCall, m.Reason)
	case mpierr.Class(m.Meeting.Class) == mpierr.Spawn:
		return fmt.Errorf("%w: %s", ErrSpawn, m.Reason)
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, m.Reason)
}
