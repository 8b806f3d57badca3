package agent

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// askJob is a job of three hosts, of which that of rank 2 does not take PkAsk.
func askJob(self int) Config {
	c := failJob(self)
	c.Hosts[0].Asks, c.Hosts[1].Asks = true, true
	return c
}

// inquiring are hosts 0 and 1 with a channel on which at most some bytes are under way.
type inquiring struct {
	*testing.T
	ends  [2]*rig
	step  int
	bytes [2]uint64 // sent by each host over the channel
}

func newInquiring(t *testing.T, step int) *inquiring {
	return &inquiring{T: t, ends: [2]*rig{newRig(t, askJob(0)).attachAll(), newRig(t, askJob(1)).attachAll()}, step: step}
}

// carry moves what waits at one end to the other one, step bytes at a time.
func (x *inquiring) carry(from int) (moved int) {
	x.Helper()
	for {
		b := x.ends[from].take(hostLink(1-from), x.step)
		if len(b) == 0 {
			return moved
		}
		moved += len(b)
		x.bytes[from] += uint64(len(b))
		x.ends[1-from].must(x.ends[1-from].feed(hostLink(from), b, x.step))
	}
}

// until carries both ways until an end has an event, and returns it.
func (x *inquiring) until(end int) Event {
	x.Helper()
	for {
		if ev, ok := x.ends[end].Next(); ok {
			return ev
		}
		if x.carry(0)+x.carry(1) == 0 {
			x.Fatal("nothing moves any more")
		}
	}
}

func (x *inquiring) ask(data []byte) uint64 {
	x.Helper()
	number, err := Ask(x.ends[0].Agent, 1, data)
	x.ends[0].must(err)
	return number
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

// TestInquiry: a question and its answer come as they are, whatever their sizes and the pieces in
// which the channel carries them, and what procs send beside them comes in order.
func TestInquiry(t *testing.T) {
	for _, step := range []int{1, 13, 128, 129, 5000, 100_000, everything} {
		for _, n := range []int{0, 1, wire.MaxAnswerPart, wire.MaxAnswerPart + 1, 3 * wire.AnswerWindow, 1 << 20} {
			if step == 1 && n > wire.AnswerWindow {
				continue
			}
			x := newInquiring(t, step)
			question, answer := pattern(n%wire.MaxQuestion), pattern(n)
			number := x.ask(question)
			ev := x.until(1)
			if ev.Kind != Asked || ev.Number != number || !bytes.Equal(ev.Data, question) || ev.Peer.Host != 0 {
				t.Fatalf("step %d: %v %d", step, ev, ev.Number)
			}
			r := x.ends[1]
			r.must(r.feed(procLink(1), r.packet(wire.PkData, 1, 0, 900, 0), everything))
			Reply(r.Agent, 0, number, answer)
			r.must(r.feed(procLink(1), r.packet(wire.PkData, 1, 0, 900, 1), everything))
			if ev = x.until(0); ev.Kind != Answered || ev.Number != number || !bytes.Equal(ev.Data, answer) {
				t.Fatalf("step %d: %v, %d bytes of %d", step, ev, len(ev.Data), n)
			}
			x.carry(1)
			got, rest := cut(x.ends[0].take(procLink(0), everything))
			if len(got) != 2 || len(rest) != 0 || x.ends[0].name(got[0]) != "DATA 1->0 #0 len=900" || x.ends[0].name(got[1]) != "DATA 1->0 #1 len=900" {
				t.Fatalf("step %d: %d packets and %d bytes for the proc", step, len(got), len(rest))
			}
			if k := r.endpoints[0].inquiry; len(k.answers)+len(k.out)+k.bytes != 0 {
				t.Fatalf("step %d: the answer is kept: %+v", step, k)
			}
		}
	}
}

// TestInquiryIsApart: what the nodes say is known at both ends at each moment, so that it can be
// told from what procs have sent.
func TestInquiryIsApart(t *testing.T) {
	x := newInquiring(t, 77)
	number := x.ask(pattern(500))
	x.until(1)
	Reply(x.ends[1].Agent, 0, number, pattern(2*wire.AnswerWindow))
	r := x.ends[1]
	for i := range 9 {
		r.must(r.feed(procLink(1), r.packet(wire.PkData, 1, 0, 100, uint64(i)), everything))
	}
	for done := false; !done; {
		b := r.take(hostLink(0), 77)
		x.bytes[1] += uint64(len(b))
		x.ends[0].must(x.ends[0].feed(hostLink(1), b, everything))
		sent, _ := InquiryBytes(r.Agent, 0)
		_, received := InquiryBytes(x.ends[0].Agent, 1)
		if of := x.bytes[1] - sent; of > 9*(wire.HeaderSize+100) || received > sent || sent-received >= wire.HeaderSize {
			t.Fatalf("%d bytes sent, of which %d by nodes, and %d received", x.bytes[1], sent, received)
		}
		if len(b) == 0 {
			done = x.carry(0) == 0
		}
	}
	if sent, _ := InquiryBytes(r.Agent, 0); x.bytes[1]-sent != 9*(wire.HeaderSize+100) {
		t.Errorf("%d of %d bytes were sent by nodes", sent, x.bytes[1])
	}
}

// TestInquiryIsNotInterrupted: a packet of the nodes of which a part has been sent is sent to its
// end before a PROTOACK, which may pass others.
func TestInquiryIsNotInterrupted(t *testing.T) {
	x := newInquiring(t, everything)
	x.ask(pattern(100))
	r := x.ends[0]
	b := r.take(hostLink(1), 50)
	r.must(r.feed(procLink(0), append(r.packet(wire.PkData, 0, 1, 9, 0), r.packet(wire.PkProtoAck, 0, 1, 0, 0)...), everything))
	b = append(b, r.output(hostLink(1))...)
	to := x.ends[1]
	to.must(to.feed(hostLink(0), b, everything))
	if ev, ok := to.Next(); !ok || ev.Kind != Asked || !bytes.Equal(ev.Data, pattern(100)) {
		t.Errorf("%v", ev)
	}
	if got, rest := cut(to.output(procLink(1))); len(got) != 2 || len(rest) != 0 {
		t.Errorf("%d packets and %d bytes for the proc", len(got), len(rest))
	}
}

// TestInquiryWindow: no more of an answer is sent than the other host takes, and nothing is kept of
// one that is withdrawn.
func TestInquiryWindow(t *testing.T) {
	x := newInquiring(t, everything)
	number := x.ask(nil)
	x.until(1)
	r := x.ends[1]
	Reply(r.Agent, 0, number, pattern(1<<20))
	if n, most := len(r.take(hostLink(0), everything)), wire.AnswerWindow+9*wire.HeaderSize; n > most || n < wire.AnswerWindow {
		t.Errorf("%d bytes are sent to one who takes nothing, at most %d", n, most)
	}
	Withdraw(r.Agent, 0, number)
	r.must(r.feed(hostLink(0), special(wire.PkTold, number, wire.MaxAnswerPart, 0), everything))
	if b := r.take(hostLink(0), everything); string(b) != string(special(wire.PkTell, number, 0, 0)) {
		t.Errorf("after an answer that is withdrawn come %d bytes, and not that there is none", len(b))
	}
}

// special makes a packet of an inquiry.
func special(kind wire.PacketType, number, length uint64, data int) []byte {
	b := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(b, &wire.Packet{Type: kind, Len: uint32(data), SrcReq: wire.RequestID(number), MsgLen: length})
	return append(b, pattern(data)...)
}

// TestInquiryIsNotForAll: neither procs nor hosts that do not list it may ask, nor hosts after
// their FINI, and nothing may be longer than agreed.
func TestInquiryIsNotForAll(t *testing.T) {
	for name, c := range map[string]struct {
		link LinkID
		b    []byte
	}{
		"a proc":                    {procLink(1), special(wire.PkAsk, 1, 0, 5)},
		"a host that does not list": {hostLink(2), special(wire.PkAsk, 1, 0, 5)},
		"an answer of such a host":  {hostLink(2), special(wire.PkTell, 1, 5, 5)},
		"after FINI":                {hostLink(0), append(fini[:], special(wire.PkAsk, 1, 0, 5)...)},
		"a long question":           {hostLink(0), special(wire.PkAsk, 1, 0, wire.MaxQuestion+1)},
		"a long part":               {hostLink(0), special(wire.PkTell, 1, 1<<20, wire.MaxAnswerPart+1)},
		"data where none is":        {hostLink(0), special(wire.PkTold, 1, 0, 1)},
		"a type that is not there":  {hostLink(0), special(wire.PkTold+1, 1, 0, 0)},
	} {
		if err := newRig(t, askJob(1)).attachAll().feed(c.link, c.b, everything); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := newRig(t, askJob(1)).attachAll()
	for h, want := range map[wire.HostRank]error{2: ErrAskUnknown, 1: ErrNoQuestion, 3: ErrNoQuestion, -1: ErrNoQuestion} {
		if _, err := Ask(r.Agent, h, nil); !errors.Is(err, want) {
			t.Errorf("host %d: %v", h, err)
		}
	}
	if _, err := Ask(r.Agent, 0, make([]byte, wire.MaxQuestion+1)); !errors.Is(err, ErrNoQuestion) {
		t.Error(err)
	}
}

// TestFloodOfQuestions: a host that asks without end, and reads nothing, gets few answers and takes
// no memory.
func TestFloodOfQuestions(t *testing.T) {
	r := newRig(t, askJob(1)).attachAll()
	for i := range 20_000 {
		r.must(r.feed(hostLink(0), special(wire.PkAsk, uint64(i), 0, 100), everything))
		r.must(r.feed(hostLink(0), special(wire.PkTold, uint64(i%5), 1<<40, 0), everything))
		r.must(r.feed(hostLink(0), special(wire.PkTell, uint64(i), 1<<63, 100), everything))
	}
	if all := r.events(); len(all) != maxAsked {
		t.Errorf("%d questions to answer", len(all))
	}
	if k := r.endpoints[0].inquiry; len(k.answers) != maxAsked || len(k.asked) != 0 || k.bytes > wire.AnswerWindow+wire.HeaderSize {
		t.Errorf("%d answers, %d questions and %d bytes are kept", len(k.answers), len(k.asked), k.bytes)
	}
	for i := range uint64(maxAsked) {
		Reply(r.Agent, 0, i, pattern(100))
		Reply(r.Agent, 0, i, pattern(200)) // again
	}
	if all := r.events(); len(all) != 0 || len(r.endpoints[0].inquiry.answers) != maxAsked {
		t.Errorf("%d answers have their places before they have left", len(r.endpoints[0].inquiry.answers))
	}
	r.must(r.feed(hostLink(0), special(wire.PkAsk, 30_000, 0, 0), everything))
	r.wantEvents("one more")
	r.take(hostLink(0), everything)
	r.must(r.feed(hostLink(0), special(wire.PkAsk, 30_001, 0, 0), everything))
	r.wantEvents("when they have left", Asked)
	if k := r.endpoints[0].inquiry; len(k.answers) != 1 {
		t.Errorf("%d answers are kept", len(k.answers))
	}
}

// TestAnswerIsTaken: how much of an answer has been taken is known until all of it is queued, from
// when on it cannot be withdrawn any more.
func TestAnswerIsTaken(t *testing.T) {
	x := newInquiring(t, everything)
	number := x.ask(nil)
	x.until(1)
	r := x.ends[1].Agent
	Reply(r, 0, number, pattern(8*wire.AnswerWindow))
	last := 0
	for range 3 {
		if n, waits := Taken(r, 0, number); !waits || n < last || n > 0 && n == last {
			t.Errorf("%d bytes are taken after %d, %v", n, last, waits)
		} else {
			last = n
		}
		x.carry(1)
		x.carry(0)
	}
	for x.carry(0)+x.carry(1) > 0 {
		if _, waits := Taken(r, 0, number); !waits {
			Withdraw(r, 0, number)
		}
	}
	if last == 0 {
		t.Error("nothing was taken")
	}
	if e := x.ends[0].wantEvents("the end", Answered)[0]; len(e.Data) != 8*wire.AnswerWindow {
		t.Errorf("%d bytes have come", len(e.Data))
	}
}

// TestHostThatDoesNotRead: neither answers nor questions pile up for it.
func TestHostThatDoesNotRead(t *testing.T) {
	r := newRig(t, askJob(1)).attachAll()
	data := pattern(100_000)
	for i := range uint64(500) {
		r.must(r.feed(hostLink(0), special(wire.PkAsk, i, 0, 10), everything))
		Reply(r.Agent, 0, i, data)
		Withdraw(r.Agent, 0, i)
		if number, err := Ask(r.Agent, 0, pattern(wire.MaxQuestion)); err == nil {
			Forget(r.Agent, 0, number)
		}
	}
	if k := r.endpoints[0].inquiry; k.bytes > maxQueued+maxAsked*(wire.AnswerWindow+wire.HeaderSize) {
		t.Errorf("%d bytes wait", k.bytes)
	}
	if _, err := Ask(r.Agent, 0, nil); !errors.Is(err, ErrAskBusy) {
		t.Errorf("a question behind what waits: %v", err)
	}
}

// TestAnswersOfNoUse: an answer that is not as it says is none, and takes no memory.
func TestAnswersOfNoUse(t *testing.T) {
	for name, parts := range map[string][][]byte{
		"too long":          {special(wire.PkTell, 1, wire.MaxAnswer+1, 5)},
		"another length":    {special(wire.PkTell, 1, 10, 5), special(wire.PkTell, 1, 11, 5)},
		"more than it says": {special(wire.PkTell, 1, 10, 5), special(wire.PkTell, 1, 10, 6)},
		"a part of nothing": {special(wire.PkTell, 1, 10, 5), special(wire.PkTell, 1, 10, 0)},
		"nothing":           {special(wire.PkTell, 1, 0, 0)},
		"data of nothing":   {special(wire.PkTell, 1, 0, 7)},
		"of no question":    {special(wire.PkTell, 2, 7, 7), special(wire.PkTell, 1, 0, 0)},
	} {
		r := newRig(t, askJob(0)).attachAll()
		number, err := Ask(r.Agent, 1, nil)
		r.must(err)
		for _, b := range parts {
			r.must(r.feed(hostLink(1), b, everything))
		}
		if e := r.wantEvents(name, Answered)[0]; e.Number != number || len(e.Data) != 0 {
			t.Errorf("%s: %d bytes for question %d", name, len(e.Data), e.Number)
		}
		r.must(r.feed(hostLink(1), special(wire.PkTell, 1, 5, 5), everything)) // late
		r.wantEvents(name)
	}
}

// TestInquiryEnds: questions without an answer end with the channel, or when the other host
// finishes, and then nothing can be asked.
func TestInquiryEnds(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"closed":   func(r *rig) { r.Closed(hostLink(1), io.EOF) },
		"its FINI": func(r *rig) { r.must(r.feed(hostLink(1), fini[:], everything)) },
		"a wrong one": func(r *rig) {
			_ = r.feed(hostLink(1), special(wire.PkTold+1, 1, 0, 0), everything)
			r.Closed(hostLink(1), nil)
		},
		"forgotten too": func(r *rig) { Forget(r.Agent, 1, 2); r.Closed(hostLink(1), io.EOF) },
	} {
		r := newRig(t, askJob(0)).attachAll()
		for range maxAsked {
			_, err := Ask(r.Agent, 1, nil)
			r.must(err)
		}
		if _, err := Ask(r.Agent, 1, nil); !errors.Is(err, ErrAskBusy) {
			t.Errorf("%s: %v", name, err)
		}
		end(r)
		answered := map[uint64]bool{}
		for _, e := range r.events() {
			if e.Kind == Answered && len(e.Data) == 0 {
				answered[e.Number] = true
			}
		}
		if len(answered) != maxAsked && !(name == "forgotten too" && len(answered) == maxAsked-1 && !answered[2]) {
			t.Errorf("%s: %v", name, answered)
		}
		if _, err := Ask(r.Agent, 1, nil); !errors.Is(err, ErrAskClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := newRig(t, askJob(1)).attachAll()
	r.must(r.feed(hostLink(0), special(wire.PkAsk, 1, 0, 0), everything))
	r.must(r.ProcDone(1))
	Reply(r.Agent, 0, 1, pattern(9))
	r.must(r.feed(hostLink(0), special(wire.PkAsk, 2, 0, 0), everything))
	if b := r.output(hostLink(0)); !bytes.Equal(b, fini[:]) {
		t.Errorf("% x", b)
	}
	if _, err := Ask(r.Agent, 0, nil); !errors.Is(err, ErrAskClosed) {
		t.Error(err)
	}
}
