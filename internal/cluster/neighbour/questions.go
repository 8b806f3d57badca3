package neighbour

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// MaxAnswer is the size of the largest answer in bytes: it shares a connection with the signs of
// life.
const MaxAnswer = 4 << 20

// Errors of questions.
var (
	// ErrAbsent means that a host is not there yet, or no longer.
	ErrAbsent = errors.New("the host is not there")
	// ErrSize means a question or an answer that is too large.
	ErrSize = errors.New("too large for the connections between hosts")
)

// Questions tracks the questions whose answers a host waits for; at the head also those of other
// hosts that it has passed on. Any host may ask any other: the question goes up to the head and
// down from there, and so does the answer.
type Questions struct {
	Self int

	last    uint64
	waiting map[uint64]func(*proto.Message)
}

// Ask begins a question to another host; limit is the time that the answer may take, and is sent
// with the question. answered is called with the answer, unless Drop is called before. Either up is
// to be sent to the parent, or, at the head, down toward the host that is asked.
func (q *Questions) Ask(to int, data []byte, limit time.Duration, answered func(*proto.Message)) (id uint64, up *proto.Up, down *proto.Down) {
	if q.waiting == nil {
		q.waiting = make(map[uint64]func(*proto.Message))
	}
	q.last++
	q.waiting[q.last] = answered
	m := &proto.Message{Host: int32(q.Self), Id: q.last, Data: data, Limit: int64(limit)}
	if q.Self != 0 {
		return q.last, &proto.Up{Word: &proto.Up_Asks{Asks: &proto.HostQuestion{To: int32(to), Message: m}}}, nil
	}
	m.Host = int32(to)
	return q.last, nil, &proto.Down{Word: &proto.Down_Asks{Asks: m}}
}

// Drop ends the wait for an answer.
func (q *Questions) Drop(id uint64) { delete(q.waiting, id) }

// Waiting returns the number of answers that are waited for.
func (q *Questions) Waiting() int { return len(q.waiting) }

// Answer passes an answer to its waiter, if there still is one.
func (q *Questions) Answer(a *proto.Message) {
	if answered := q.waiting[a.GetId()]; answered != nil {
		delete(q.waiting, a.GetId())
		answered(a)
	}
}

// FromParent handles a question or an answer that comes from the head. If pass is true it is for
// the host to, which is below; otherwise asked is a question that this host is to answer, or nil.
func (q *Questions) FromParent(w *proto.Down) (asked *proto.Message, to int, pass bool) {
	switch x := w.GetWord().(type) {
	case *proto.Down_Asks:
		to, asked = int(x.Asks.GetHost()), x.Asks
	case *proto.Down_Answer:
		if to = int(x.Answer.GetHost()); to == q.Self {
			q.Answer(x.Answer)
		}
	default:
		return nil, 0, false
	}
	if to != q.Self {
		return nil, to, true
	}
	return asked, to, false
}

// Reply returns the answer to a question that has come from the head.
func Reply(asked *proto.Message, data []byte, err error) *proto.Up {
	return &proto.Up{Word: &proto.Up_Answer{Answer: answerTo(asked, data, err)}}
}

// ForwardAnswer returns, at the head, the answer to a question of another host, with the data or
// the error that resulted.
func ForwardAnswer(asked *proto.Message, data []byte, err error) *proto.Down {
	return &proto.Down{Word: &proto.Down_Answer{Answer: answerTo(asked, data, err)}}
}

func answerTo(asked *proto.Message, data []byte, err error) *proto.Message {
	if len(data) > MaxAnswer {
		err = fmt.Errorf("an answer of %d bytes is %w", len(data), ErrSize)
	}
	a := &proto.Message{Host: asked.GetHost(), Id: asked.GetId()}
	if err != nil {
		a.Error = err.Error()
	} else {
		a.Data = data
	}
	return a
}

// ErrorOf returns the error that answerTo has put into an answer, so that errors.Is finds ErrAbsent
// and context.DeadlineExceeded; nil if there is none.
func ErrorOf(a *proto.Message) error {
	switch e := a.GetError(); e {
	case "":
		return nil
	case ErrAbsent.Error():
		return ErrAbsent
	case context.DeadlineExceeded.Error():
		return context.DeadlineExceeded
	default:
		return errors.New(e)
	}
}

// ParentOf returns, at the head, the answer to a host that asks for its parent; nil if the parent
// is not there yet. listens has the addresses of the hosts that have hosts below them. The head
// needs no address: the host is connected to it already.
func ParentOf(t membership.Tree, host int, listens map[int]string) *proto.Parent {
	above := t.Parent(host)
	at, there := listens[above]
	if above != 0 && !there {
		return nil
	}
	return &proto.Parent{Host: int32(above), Address: at}
}
