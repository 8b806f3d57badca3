package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// apartSide is a boxSide that has messages whose data come apart.
type apartSide struct{ *boxSide }

func (apartSide) FastBoxApart(m *link.EagerMessage) bool { return m.Apart(m.Len) }

// newApart is newBoxed with such sides.
func newApart(tb testing.TB, cfg Config) *boxed {
	p := &boxed{pair: newPair(tb, cfg)}
	p.d[0], p.d[1] = newBoxSides()
	for i, e := range p.e {
		e.UseFastBoxes(0, apartSide{p.d[i]})
	}
	return p
}

// announce has the box of the next message from 0 to 1, of n bytes that come apart.
func (p *boxed) announce(tag, n int) {
	p.tb.Helper()
	m := p.d[0].FastBoxRoom(0)
	if m == nil {
		p.tb.Fatal("no box is free")
	}
	m.Context, m.Rank, m.Tag, m.Kind = 0, 0, int32(tag), 0
	p.d[0].PostFastBox(nil)
	m.Len = uint32(n)
	binary.NativeEndian.PutUint32(m.Data[:], link.FastBoxNowhere)
}

// take has 1 take the boxes that have come.
func (p *boxed) take() {
	p.tb.Helper()
	if took, err := p.e[1].TakeFastBoxes(0); !took || err != nil {
		p.tb.Fatal(took, err)
	}
}

const apartSize = 100_000 // more than is received ahead

// TestDataThatComeApart: a message whose data come apart is received as any other, whoever waits
// for it at which time, and so is what follows it.
func TestDataThatComeApart(t *testing.T) {
	data := alphabet(apartSize)
	for name, c := range map[string]struct {
		room         int
		before, half bool // the receive is posted before the box has come, or when half of the data have
		probes       bool
		err          error
	}{
		"expected":              {room: apartSize, before: true},
		"expected, more room":   {room: apartSize + 5, before: true},
		"expected, too long":    {room: 1000, before: true, err: ErrTruncate},
		"unexpected":            {room: apartSize},
		"unexpected, too long":  {room: 1000, err: ErrTruncate},
		"unexpected, then half": {room: apartSize, half: true},
		"probed":                {room: apartSize, probes: true},
	} {
		p := newApart(t, roomy)
		buf, next := make([]byte, c.room), make([]byte, 10)
		var r *Request
		if c.before {
			r = p.recv(1, buf)
		}
		p.announce(7, apartSize)
		p.take()
		put(t, p.e[1], 0, data[:apartSize/2])
		if c.half {
			r = p.recv(1, buf)
		}
		if _, ok := p.e[1].Probe(Envelope{Rank: 0, Tag: 7}, 0); ok {
			t.Errorf("%s: it is there before its data", name)
		}
		if r != nil && (r.Done() || r.Posted()) {
			t.Errorf("%s: done %v, posted %v with half of the data", name, r.Done(), r.Posted())
		}
		if _, takes := p.e[1].FastBoxesOpen(0); takes {
			t.Errorf("%s: C may take what comes behind data that are missing", name)
		}
		put(t, p.e[1], 0, data[apartSize/2:])
		if c.probes {
			want := Status{Tag: 7, Len: apartSize}
			if st, ok := p.e[1].Probe(Envelope{Rank: AnySource, Tag: AnyTag}, NoPeer); !ok || st != want {
				t.Errorf("%s: probed %v, %+v", name, ok, st)
			}
		}
		if r == nil {
			r = p.recv(1, buf)
		}
		n := min(c.room, apartSize)
		if !r.Done() || !errors.Is(r.Err(), c.err) || r.Status().Len != int64(n) || !bytes.Equal(buf[:n], data[:n]) {
			t.Errorf("%s: done %v, %+v", name, r.Done(), r.Status())
		}
		q := p.recv(1, next)
		p.now(0, alphabet(10))
		p.carry(0)
		if !q.Done() || !bytes.Equal(next, alphabet(10)) || !p.e[1].Idle() {
			t.Errorf("%s: what follows: done %v", name, q.Done())
		}
	}
}

// TestDataThatComeApartIntoASink passes them on as they come.
func TestDataThatComeApartIntoASink(t *testing.T) {
	p := newApart(t, roomy)
	sink := &gathered{tb: t, data: make([]byte, apartSize)}
	r := p.e[1].RecvInto(Envelope{Rank: 0, Tag: 7}, 0, sink)
	p.announce(7, apartSize)
	p.take()
	put(t, p.e[1], 0, alphabet(apartSize))
	if !r.Done() || r.Err() != nil || !bytes.Equal(sink.data, alphabet(apartSize)) {
		t.Errorf("done %v, %+v", r.Done(), r.Status())
	}
}

// TestDataThatComeApartAreNoPackets: they are not counted for PROTOACKs, as their sender does not
// count them, but they are for the memory of unexpected messages.
func TestDataThatComeApartAreNoPackets(t *testing.T) {
	cfg := Config{MaxData: 65536, AckMark: 2, HiWater: 4, Unexpected: 64 << 20, UnexpectedOf: func(Peer) int64 { return 64 << 20 }}
	p := newApart(t, cfg)
	for range 10 {
		p.announce(7, 5000)
		p.take()
		put(t, p.e[1], 0, alphabet(5000))
		if p.e[1].HasOutput(0) {
			t.Fatal("it is answered")
		}
	}
	if held, want := p.e[1].peer(0).held, int64(10*link.FastBoxCost(5000)); held != want {
		t.Errorf("%d bytes are held, want %d", held, want)
	}
	for range 10 {
		if r := p.recv(1, make([]byte, 5000)); !r.Done() || r.Err() != nil {
			t.Fatal(r.Done(), r.Err())
		}
	}
	if held := p.e[1].peer(0).held; held != 0 {
		t.Errorf("%d bytes are held at the end", held)
	}
}

// TestDataThatComeApartAndNobodyWants are dropped: of a context that was given up, also in their
// middle, and of a peer that is down.
func TestDataThatComeApartAndNobodyWants(t *testing.T) {
	gone := errors.New("it is of no use")
	for name, spoil := range map[string]func(p *boxed){
		"failed context": func(p *boxed) { p.e[1].FailContext(0, gone) },
		"peer down":      func(p *boxed) { p.e[1].PeerDown(0, gone) },
	} {
		for _, early := range []bool{true, false} {
			p := newApart(t, roomy)
			buf := make([]byte, apartSize)
			r := p.recv(1, buf)
			if early {
				spoil(p)
			}
			p.announce(7, apartSize)
			p.take()
			put(t, p.e[1], 0, alphabet(apartSize/2))
			if !early {
				spoil(p)
			}
			put(t, p.e[1], 0, alphabet(apartSize)[apartSize/2:])
			if !r.Done() || early && (r.Err() == nil || !bytes.Equal(buf, make([]byte, apartSize))) {
				t.Errorf("%s, early %v: done %v, %v", name, early, r.Done(), r.Err())
			}
			if _, takes := p.e[1].FastBoxesOpen(0); !takes && name != "peer down" {
				t.Errorf("%s, early %v: more is missing", name, early)
			}
		}
	}
}

// TestDataThatComeApartWrongly: a box in the middle of a packet, a tag that there is not, and no
// data.
func TestDataThatComeApartWrongly(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(p *boxed, m *link.EagerMessage)
		says  string
	}{
		"in a packet": {func(p *boxed, _ *link.EagerMessage) { p.e[1].link(0).payload = true }, "in the middle of a packet"},
		"tag":         {func(_ *boxed, m *link.EagerMessage) { m.Tag = int32(wire.TagOutOfRange) }, "31 bits"},
	} {
		p := newApart(t, roomy)
		p.announce(7, apartSize)
		c.spoil(p, p.d[1].NextFastBox())
		if _, err := p.e[1].TakeFastBoxes(0); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	var e reader
	if err := e.takeApart(&linkState{peer: &peer{}}, &link.EagerMessage{}, 0); err == nil {
		t.Error("a message without data comes apart")
	}
}
