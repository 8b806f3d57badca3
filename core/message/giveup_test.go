package message

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/wire"
)

var errGivenUp = errors.New("given up")

// TestFailContext: nothing of a context waits any more, the other contexts go on, and what still
// comes is dropped.
func TestFailContext(t *testing.T) {
	p := newPair(t, Config{MaxData: 100, AckMark: 2, HiWater: 4, Unexpected: 1 << 20, UnexpectedOf: func(Peer) int64 { return 1 << 20 }})
	for i, e := range p.e { // a long message stays under way
		e.peer(Peer(1 - i)).window = flow.New(flow.Limits{AckMark: 2, HiWater: 4})
	}
	const bad, good wire.ContextID = 6, 8
	env := func(from int, c wire.ContextID) Envelope {
		return Envelope{Context: c, Rank: wire.CommRank(from), Tag: 7}
	}
	long := make([]byte, 1000)
	reqs := []*Request{
		p.e[0].Send(1, env(0, bad), Standard, long, 1, 0), // it is matched and under way
		p.e[1].Recv(env(0, bad), 0, make([]byte, len(long))),
		p.e[0].Send(1, env(0, bad), Synchronous, nil, 0, 0), // nobody receives it
		p.e[1].Recv(env(0, bad), 0, make([]byte, len(long))),
		p.e[1].Recv(Envelope{Context: bad, Rank: AnySource, Tag: 9}, NoPeer, nil),
		p.e[1].Send(1, env(1, bad), Synchronous, nil, 0, 0), // to itself
	}
	p.move(0)
	p.move(1) // the SYNCACKs
	unexpected := p.e[0].Send(1, env(0, bad), Standard, []byte("later"), 1, 0)
	p.move(0)
	for _, e := range p.e {
		e.FailContext(bad, errGivenUp)
	}
	p.settle()
	for i, r := range reqs {
		if !r.Done() || i != 2 && i != 3 && !errors.Is(r.Err(), errGivenUp) {
			t.Errorf("operation %d: done is %v, %v", i, r.Done(), r.Err())
		}
	}
	if !unexpected.Done() {
		t.Error("a send is not done")
	}
	for i, e := range p.e {
		for _, r := range []*Request{e.Send(Peer(1-i), env(i, bad), Standard, nil, 0, 0), e.Recv(env(1-i, bad), Peer(1-i), nil)} {
			if !errors.Is(r.Err(), errGivenUp) {
				t.Errorf("a later operation: %v", r.Err())
			}
		}
		if _, ok := e.SendEager(Peer(1-i), env(i, bad), nil, 0, 0); ok {
			t.Error("a short message leaves")
		}
		if m, r := e.Waiting(); m != 0 || r != 0 || !e.Idle() {
			t.Errorf("%d messages and %d receives wait, idle is %v", m, r, e.Idle())
		}
		s, r := e.Send(Peer(1-i), env(i, good), Standard, long, 1, 0), p.e[1-i].Recv(env(i, good), Peer(i), make([]byte, len(long)))
		p.settle()
		if s.Err() != nil || r.Err() != nil || !s.Done() || !r.Done() {
			t.Errorf("another context: %v %v", s.Err(), r.Err())
		}
	}
}

// filler is a link that fills memory by itself.
type filler struct{ recalled func() }

func (f filler) Recall() { f.recalled() }

// TestRecall: memory to which a link may write is recalled before the program gets it back, and not
// without need.
func TestRecall(t *testing.T) {
	for name, end := range map[string]func(e *Engine){
		"failed context": func(e *Engine) { e.FailContext(0, errGivenUp) },
		"peer down":      func(e *Engine) { e.PeerDown(0, errGivenUp) },
	} {
		for _, missing := range []int{0, 300} {
			p := newPair(t, Config{MaxData: 500, AckMark: 2, HiWater: 4})
			r := p.recv(1, make([]byte, 1000))
			p.send(0, Standard, make([]byte, 1000))
			p.move(0)
			p.move(1) // SYNCACK
			recalls := 0
			p.e[1].FillsInput(0, filler{func() {
				if recalls++; r.Done() {
					t.Errorf("%s: the receive was done before", name)
				}
			}})
			var out []byte
			for _, b := range p.e[0].Output(0) {
				out = append(out, b...)
			}
			for out = out[:len(out)-missing]; len(out) > 0; {
				n := 0
				for _, in := range p.e[1].Input(0) {
					k := copy(in, out)
					n, out = n+k, out[k:]
				}
				if err := p.e[1].Received(0, n); err != nil {
					t.Fatal(err)
				}
			}
			if end(p.e[1]); recalls != min(missing, 1) || !r.Done() {
				t.Errorf("%s, %d bytes are missing: %d recalls, done is %v", name, missing, recalls, r.Done())
			}
		}
	}
}

// TestLateOfFailedContext: packets of a context that only the receiver has given up yet are
// dropped.
func TestLateOfFailedContext(t *testing.T) {
	p := newPair(t, Config{MaxData: 100, AckMark: 2, HiWater: 4})
	r := p.recv(1, make([]byte, 1000))
	s := p.send(0, Standard, make([]byte, 1000))
	p.move(0)
	p.move(1)
	p.e[1].FailContext(0, errGivenUp)
	p.settle() // the rest
	short := p.send(0, Standard, []byte("short"))
	p.settle()
	if !errors.Is(r.Err(), errGivenUp) || !s.Done() || !short.Done() {
		t.Errorf("%v, %v, %v", r.Err(), s.Done(), short.Done())
	}
	if n, _ := p.e[1].Waiting(); n != 0 {
		t.Errorf("%d messages are kept", n)
	}
}
