package message

import (
	"bytes"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// put gives raw to the engine as a link would that has all of it.
func put(t testing.TB, e *Engine, l LinkID, raw []byte) {
	t.Helper()
	for len(raw) > 0 {
		n := 0
		for _, b := range e.Input(l) {
			k := copy(b, raw)
			raw = raw[k:]
			n += k
		}
		if err := e.Received(l, n); err != nil {
			t.Fatal(err)
		}
	}
}

// wireBytes is all that p's engine from sends.
func (p *pair) wireBytes(from int) []byte {
	var raw []byte
	for p.e[from].HasOutput(0) {
		out := p.e[from].Output(0)
		raw = append(raw, bytes.Join(out, nil)...)
		p.e[from].Sent(0, total(out))
	}
	return raw
}

func TestPayloadLandsInTheUsersBuffer(t *testing.T) {
	p := newPair(t, roomy)
	data := alphabet(200000)
	buf := make([]byte, len(data))
	r := p.recv(1, buf)
	p.send(0, Standard, data)
	raw := p.wireBytes(0)
	put(t, p.e[1], 0, raw[:headerSize])
	if in := p.e[1].Input(0); len(in) != 2 || !same(in[0], buf) || len(in[0]) != 65536 {
		t.Fatalf("%d slices, the first of %d bytes", len(in), len(in[0]))
	}
	put(t, p.e[1], 0, raw[headerSize:])
	p.move(1)
	raw = p.wireBytes(0)
	put(t, p.e[1], 0, raw[:headerSize+100])
	if in := p.e[1].Input(0); !same(in[0], buf[65536+100:]) || len(in[0]) != 65536-100 {
		t.Fatalf("the rest of a continuation packet: %d bytes", len(in[0]))
	}
	put(t, p.e[1], 0, raw[headerSize+100:])
	if !r.Done() || !bytes.Equal(buf, data) {
		t.Fatal("data differs")
	}
}

// After a large payload only little more than a header is read ahead, after a
// small one as much as there is.
func TestReadAhead(t *testing.T) {
	p := newPair(t, roomy)
	ahead := func() int {
		in := p.e[1].Input(0)
		return len(in[len(in)-1])
	}
	ahead() // makes the buffer
	p.fillInput(1)
	if n := ahead(); n != inputSize {
		t.Errorf("after empty packets: %d", n)
	}
	p.recv(1, make([]byte, 65536))
	p.send(0, Standard, make([]byte, 65536))
	put(t, p.e[1], 0, p.wireBytes(0))
	if n := ahead(); n != bulkAhead {
		t.Errorf("after a large payload: %d", n)
	}
	p.send(0, Standard, make([]byte, 8))
	put(t, p.e[1], 0, p.wireBytes(0))
	if n := ahead(); n != inputSize {
		t.Errorf("after a small payload: %d", n)
	}
}

// fillInput sends small messages to an engine until its receive buffer has its
// full size.
func (p *pair) fillInput(at int) {
	s := p.e[at].link(0)
	for len(s.buf) < inputSize {
		for range inputSize / headerSize {
			p.send(1-at, Standard, nil)
			p.recv(at, nil)
		}
		p.settle()
	}
}

// The size of a link's receive buffer follows its traffic.
func TestInputGrows(t *testing.T) {
	p := newPair(t, roomy)
	size := func() int { return total(p.e[1].Input(0)) }
	few := func() {
		p.recv(1, nil)
		p.send(0, Standard, make([]byte, 8))
		p.settle()
	}
	few()
	for range 1000 {
		few()
	}
	if n := size(); n != firstInput {
		t.Errorf("%d bytes for a message at a time", n)
	}
	for want := firstInput; ; want *= inputGrowth {
		if n := size(); n != want {
			t.Fatalf("%d bytes, want %d", n, want)
		}
		if want == inputSize {
			break
		}
		// A part of a header is left in the buffer that grows.
		for range want / headerSize {
			p.send(0, Standard, nil)
		}
		raw := p.wireBytes(0)
		for _, piece := range [][]byte{raw[:headerSize-1], raw[headerSize-1:]} {
			put(t, p.e[1], 0, piece)
		}
	}
	p.send(0, Standard, nil)
	p.settle()
	if n := p.e[1].unexpected.Len(); n != (firstInput+4*firstInput+16*firstInput)/headerSize+1 {
		t.Errorf("%d messages have come", n)
	}
}

// A payload that is dropped is read in large pieces, even if it is a single large one.
func TestDroppedPayloadIsReadQuickly(t *testing.T) {
	p := newPair(t, roomy)
	r := p.recv(1, make([]byte, 10))
	p.send(0, Standard, make([]byte, 60000))
	raw := p.wireBytes(0)
	put(t, p.e[1], 0, raw[:headerSize])
	if n := total(p.e[1].Input(0)); n < 60000 {
		t.Errorf("room for %d bytes", n)
	}
	put(t, p.e[1], 0, raw[headerSize:])
	if !r.Done() || r.Err() != ErrTruncate || r.Status().Len != 10 {
		t.Errorf("%+v", r.Status())
	}
}

// The result does not depend on where reads cut the stream.
func TestEveryCut(t *testing.T) {
	p := newPair(t, Config{MaxData: 8, AckMark: 4, HiWater: 100})
	for i := range 6 {
		p.send(0, Standard, alphabet(i))
	}
	raw := p.wireBytes(0)
	for cut := range raw {
		p := newPair(t, Config{MaxData: 8, AckMark: 4, HiWater: 100})
		put(t, p.e[1], 0, raw[:cut])
		put(t, p.e[1], 0, raw[cut:])
		for i := range 6 {
			buf := make([]byte, 8)
			if r := p.recv(1, buf); !r.Done() || r.Status().Len != int64(i) || !bytes.Equal(buf[:i], alphabet(i)) {
				t.Fatalf("cut at %d: message %d is %q", cut, i, buf)
			}
		}
		if hs := headers(p.e[1].Output(0)); len(hs) != 1 || hs[0].Type != wire.PkProtoAck {
			t.Fatalf("cut at %d: answered %v", cut, hs)
		}
	}
}

func TestReceivedMoreThanThereIsRoom(t *testing.T) {
	p := newPair(t, roomy)
	n := total(p.e[0].Input(0))
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = p.e[0].Received(0, n+1)
}
