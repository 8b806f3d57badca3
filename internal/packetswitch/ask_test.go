package packetswitch

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
)

// special makes a packet by which nodes ask each other.
func special(kind wire.PacketType, number, length uint64, data string) []byte {
	b := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(b, &wire.Packet{Type: kind, Len: uint32(len(data)), SrcReq: wire.RequestID(number), MsgLen: length})
	return append(b, data...)
}

// TestAsk: a question goes over the channel and its answer comes back, whatever procs send
// meanwhile; without an answer the caller has the end of its context, or that of the channel. Of
// what the nodes say the channel counts nothing.
func TestAsk(t *testing.T) {
	b := newBench(t)
	type result struct {
		data []byte
		err  error
	}
	ask := func(ctx context.Context, question string) chan result {
		done := make(chan result, 1)
		go func() {
			data, of, err := b.s.Ask(ctx, []wire.HostRank{0, 5, 1}, []byte(question))
			if data != nil && of != 1 {
				t.Errorf("host %d has answered", of)
			}
			done <- result{data, err}
		}()
		return done
	}
	first := ask(t.Context(), "who?")
	want(t, b.channel, special(wire.PkAsk, 1, 0, "who?"))
	send(t, b.channel, packet(2, 0, 300))
	send(t, b.channel, special(wire.PkTell, 1, 5, "you"))
	send(t, b.channel, special(wire.PkTell, 1, 5, "!!"))
	want(t, b.procs[0], packet(2, 0, 300))
	if r := <-first; r.err != nil || string(r.data) != "you!!" {
		t.Errorf("%q, %v", r.data, r.err)
	}
	counts := make(chan ChannelState, 1)
	b.s.Post(func() { counts <- b.s.Channels()[0] })
	if c := <-counts; !c.Counted || c.Sent != 0 || c.Received != wire.HeaderSize+300 {
		t.Errorf("%+v", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	second := ask(ctx, "again")
	want(t, b.channel, special(wire.PkAsk, 2, 0, "again"))
	cancel()
	if r := <-second; !errors.Is(r.err, context.Canceled) {
		t.Errorf("%v", r.err)
	}
	send(t, b.channel, special(wire.PkTell, 2, 4, "late"))
	third := ask(t.Context(), "so?")
	want(t, b.channel, special(wire.PkAsk, 3, 0, "so?"))
	_ = b.channel.Close()
	if r := <-third; !errors.Is(r.err, ErrNoAnswer) {
		t.Errorf("%v", r.err)
	}
	if r := <-ask(t.Context(), "now?"); !errors.Is(r.err, agent.ErrNoQuestion) {
		t.Errorf("%v", r.err)
	}
	b.s.Stop()
	if r := <-ask(t.Context(), "over?"); !errors.Is(r.err, agent.ErrNoQuestion) {
		t.Errorf("%v", r.err)
	}
}

// TestAnswer: a question that comes over the channel gets what Config.Answer says, or else nothing.
func TestAnswer(t *testing.T) {
	for _, answers := range []bool{true, false} {
		b := idleBench(t, "auto", socketPair)
		if answers {
			b.s.Answer = func(from wire.HostRank, question []byte, reply func([]byte)) {
				go reply(append([]byte{'0' + byte(from)}, bytes.ToUpper(question)...))
			}
		}
		go b.s.Run()
		send(t, b.channel, special(wire.PkAsk, 77, 0, "who?"))
		if answers {
			want(t, b.channel, special(wire.PkTell, 77, 5, "1WHO?"))
		} else {
			want(t, b.channel, special(wire.PkTell, 77, 0, ""))
		}
	}
}

// TestAskInVain: who asks waits no longer than its context, even if the loop has no time, and then
// nothing is asked. A host that has too many questions is told apart from one that cannot be asked.
func TestAskInVain(t *testing.T) {
	b := idleBench(t, "auto", socketPair) // nobody runs it yet
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := b.s.Ask(ctx, []wire.HostRank{1}, []byte("who?"))
		done <- err
	}()
	for !b.s.posted.Load() {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := b.s.Ask(ctx, []wire.HostRank{1}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go b.s.Run()
	errs := make(chan error, 5)
	ctx, cancel = context.WithCancel(t.Context())
	for range cap(errs) {
		go func() {
			_, _, err := b.s.Ask(ctx, []wire.HostRank{0, 1, 5}, []byte("so?"))
			errs <- err
		}()
	}
	if err := <-errs; !errors.Is(err, agent.ErrAskBusy) {
		t.Error(err)
	}
	for n := range uint64(4) {
		want(t, b.channel, special(wire.PkAsk, n+1, 0, "so?"))
	}
	cancel()
	for range 4 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	left := make(chan int, 1)
	b.s.Post(func() { left <- len(b.s.answers) })
	if n := <-left; n != 0 {
		t.Errorf("%d answers are waited for", n)
	}
}

// byHand is a machine whose timers a test lets pass.
type byHand struct {
	machine.Local
	due chan func()
}

func (m byHand) AfterFunc(_ time.Duration, f func()) machine.Timer {
	m.due <- f
	return time.AfterFunc(time.Hour, func() {})
}

// TestLongAnswer: an answer is withdrawn if nothing of it is taken for some time, and not while it
// is.
func TestLongAnswer(t *testing.T) {
	for _, goesOn := range []bool{true, false} {
		b := idleBench(t, "auto", socketPair)
		m := byHand{due: make(chan func(), 8)}
		b.s.Machine = m
		answer := bytes.Repeat([]byte("x"), 3*wire.AnswerWindow)
		b.s.Answer = func(_ wire.HostRank, _ []byte, reply func([]byte)) { go reply(answer) }
		go b.s.Run()
		send(t, b.channel, special(wire.PkAsk, 7, 0, "who?"))
		part := string(answer[:wire.MaxAnswerPart])
		for range wire.AnswerWindow / wire.MaxAnswerPart {
			want(t, b.channel, special(wire.PkTell, 7, uint64(len(answer)), part))
		}
		due := <-m.due
		if goesOn {
			for n := range uint64(2) {
				send(t, b.channel, special(wire.PkTold, 7, (n+1)*wire.MaxAnswerPart, ""))
				want(t, b.channel, special(wire.PkTell, 7, uint64(len(answer)), part))
				due()
				due = <-m.due // the loop has looked, and found that more was taken
			}
		}
		due()
		want(t, b.channel, special(wire.PkTell, 7, 0, "")) // there is none
		b.s.Stop()
		if len(m.due) != 0 {
			t.Errorf("%d timers are left", len(m.due))
		}
	}
}
