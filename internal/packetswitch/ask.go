package packetswitch

import (
	"context"
	"errors"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/wire"
)

// ErrNoAnswer is the error of Ask if the other node gives no answer, or the channel has ended.
var ErrNoAnswer = errors.New("its node gives no answer to the question over the agents' channel")

// answerTime is how long the other end of a channel may take to receive more of an answer.
const answerTime = 10 * time.Second

const noHost wire.HostRank = -1

type asking struct {
	host   wire.HostRank
	number uint64
}

// askable returns the first of some hosts that can be asked. The error is agent.ErrAskBusy if one
// could but for the questions to it that have no answer yet.
func (s *Switch) askable(hosts []wire.HostRank) (wire.HostRank, error) {
	why := agent.ErrAskClosed
	for _, h := range hosts {
		err := agent.CanAsk(s.Agent, h)
		if err == nil {
			return h, nil
		}
		if why != agent.ErrAskBusy { //nolint:errorlint // it is that value
			why = err
		}
	}
	return noHost, why
}

// Ask asks the node of the first of some hosts that can be asked, over the channel to it, and
// returns which one that is. Any goroutine may call it, except the loop. The error is that of ctx
// if that ends before the answer has come, ErrNoAnswer, or wraps agent.ErrNoQuestion if none of the
// hosts can be asked.
func (s *Switch) Ask(ctx context.Context, hosts []wire.HostRank, question []byte) (data []byte, of wire.HostRank, err error) {
	if ctx.Err() != nil {
		return nil, noHost, context.Cause(ctx)
	}
	b := begun{asking: asking{host: noHost}}
	said, answer := make(chan begun, 1), make(chan []byte, 1)
	ok := s.Post(func() {
		if err := context.Cause(ctx); err != nil {
			said <- begun{err: err}
			return
		}
		said <- s.begin(hosts, question, func(data []byte) { answer <- data })
	})
	if !ok {
		return nil, noHost, agent.ErrAskClosed
	}
	select {
	case b = <-said:
	case <-s.done:
		return nil, noHost, agent.ErrAskClosed
	case <-ctx.Done():
		s.Post(func() { s.giveUp(<-said) }) // that it has begun, or not, is said by then
		return nil, noHost, context.Cause(ctx)
	}
	if b.err != nil {
		return nil, noHost, b.err
	}
	select {
	case data := <-answer:
		if len(data) == 0 {
			return nil, b.host, ErrNoAnswer
		}
		return data, b.host, nil
	case <-s.done:
		return nil, b.host, ErrNoAnswer
	case <-ctx.Done():
		s.Post(func() { s.giveUp(b) })
		return nil, b.host, context.Cause(ctx)
	}
}

// begin asks, and has answered called by the loop with the answer. It is called by the loop.
func (s *Switch) begin(hosts []wire.HostRank, question []byte, answered func([]byte)) (b begun) {
	if b.host, b.err = s.askable(hosts); b.err != nil {
		return b
	}
	if b.number, b.err = agent.Ask(s.Agent, b.host, question); b.err == nil {
		s.answers[b.asking] = answered
		s.output()
	}
	return b
}

// AskLater asks like Ask, without waiting, for a caller that has no goroutine for it, as the
// simulator has none: the loop calls answered with the answer or the error, if it does not end
// before.
func (s *Switch) AskLater(hosts []wire.HostRank, question []byte, answered func(data []byte, of wire.HostRank, err error)) {
	s.Post(func() {
		var b begun
		b = s.begin(hosts, question, func(data []byte) {
			if len(data) == 0 {
				answered(nil, b.host, ErrNoAnswer)
				return
			}
			answered(data, b.host, nil)
		})
		if b.err != nil {
			answered(nil, noHost, b.err)
		}
	})
}

// begun is a question that was asked, or why it was not.
type begun struct {
	asking
	err error
}

// giveUp drops a question that nobody waits for any more.
func (s *Switch) giveUp(b begun) {
	if b.err == nil {
		delete(s.answers, b.asking)
		agent.Forget(s.Agent, b.host, b.number)
	}
}

// asked passes a question on to Config.Answer.
func (s *Switch) asked(ev agent.Event) {
	host, number := ev.Peer.Host, ev.Number
	reply := func(data []byte) {
		s.Post(func() {
			agent.Reply(s.Agent, host, number, data)
			s.output()
		})
		if len(data) <= wire.AnswerWindow {
			return // all of it is queued
		}
		s.expect(host, number, 0)
	}
	if s.Answer == nil {
		reply(nil)
		return
	}
	s.Answer(host, ev.Data, reply)
}

// expect withdraws an answer if the other host has not taken more of it for answerTime than some
// bytes.
func (s *Switch) expect(host wire.HostRank, number uint64, taken int) {
	s.Machine.AfterFunc(answerTime, func() {
		s.Post(func() {
			now, waits := agent.Taken(s.Agent, host, number)
			switch {
			case !waits:
			case now > taken:
				s.expect(host, number, now)
			default:
				agent.Withdraw(s.Agent, host, number)
				s.output()
			}
		})
	})
}

func (s *Switch) answered(ev agent.Event) {
	x := asking{ev.Peer.Host, ev.Number}
	if answer := s.answers[x]; answer != nil {
		delete(s.answers, x)
		answer(ev.Data)
	}
}
