package packetswitch

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/wire"
)

// special makes a packet by which nodes ask each other.
func special(kind wire.PacketType, number, length uint64, data string) []byte {
	b := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(b, &wire.Packet{Type: kind, Len: uint32(len(data)), SrcReq: wire.RequestID(number), MsgLen: length})
	return append(b, data...)
}

// TestAsk: a question goes over the channel and its answer comes back, whatever procs send meanwhile;
// without an answer the caller has the end of its context, or that of the channel. Of what the nodes say
// the channel counts nothing.
func TestAsk(t *testing.T) {
	b := newBench(t)
	type result struct {
		data []byte
		err  error
	}
	ask := func(ctx context.Context, question string) chan result {
		done := make(chan result, 1)
		go func() {
			data, err := b.s.Ask(ctx, []wire.HostRank{0, 5, 1}, []byte(question))
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
