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

// answerTime is how long the other end of a channel may take to receive an answer.
const answerTime = 10 * time.Second

type asking struct {
	host   wire.HostRank
	number uint64
}

// askable returns the first of some hosts that can be asked.
func (s *Switch) askable(hosts []wire.HostRank) (wire.HostRank, error) {
	err := agent.ErrAskClosed
	for _, h := range hosts {
		if err = agent.CanAsk(s.Agent, h); err == nil {
			return h, nil
		}
	}
	return 0, err
}

// Ask asks the node of the first of some hosts to which there is a channel, over that channel. Any
// goroutine may call it, except the loop. The error is that of ctx if that ends before the answer has
// come, ErrNoAnswer, or wraps agent.ErrNoQuestion if none of the hosts can be asked.
func (s *Switch) Ask(ctx context.Context, hosts []wire.HostRank, question []byte) ([]byte, error) {
	type begun struct {
		asking
		err error
	}
	said, answer := make(chan begun, 1), make(chan []byte, 1)
	ok := s.Post(func() {
		var b begun
		if b.host, b.err = s.askable(hosts); b.err == nil {
			b.number, b.err = agent.Ask(s.Agent, b.host, question)
		}
		if b.err == nil {
			s.answers[b.asking] = answer
			s.output()
		}
		said <- b
	})
	if !ok {
		return nil, agent.ErrAskClosed
	}
	var b begun
	select {
	case b = <-said:
	case <-s.done:
		return nil, agent.ErrAskClosed
	}
	if b.err != nil {
		return nil, b.err
	}
	select {
	case data := <-answer:
		if len(data) == 0 {
			return nil, ErrNoAnswer
		}
		return data, nil
	case <-s.done:
		return nil, ErrNoAnswer
	case <-ctx.Done():
		s.Post(func() {
			delete(s.answers, b.asking)
			agent.Forget(s.Agent, b.host, b.number)
		})
		return nil, context.Cause(ctx)
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
		s.Machine.AfterFunc(answerTime, func() {
			s.Post(func() {
				agent.Withdraw(s.Agent, host, number)
				s.output()
			})
		})
	}
	if s.Answer == nil {
		reply(nil)
		return
	}
	s.Answer(host, ev.Data, reply)
}

func (s *Switch) answered(ev agent.Event) {
	x := asking{ev.Peer.Host, ev.Number}
	if answer := s.answers[x]; answer != nil {
		delete(s.answers, x)
		answer <- ev.Data
	}
}
