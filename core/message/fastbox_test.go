package message

import (
	"bytes"
	"errors"
	"io"
	"math"
	"sync/atomic"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// boxSide is a side of a link in memory that takes fast-box messages.
type boxSide struct {
	boxes         link.FastBoxes
	written, read uint64 // bytes of the two streams
	alone         bool   // the other side takes no fast-box messages
}

// boxArea is the memory for data of fast-box messages, and longestBox the longest of them.
const (
	boxArea    = 2 << 10
	longestBox = boxArea / link.FastBoxShare
)

func newBoxSides() (a, b *boxSide) {
	there, back := new(link.FastBoxPage), new(link.FastBoxPage)
	taken, area := new([2]atomic.Uint64), new([2][boxArea]byte)
	a = &boxSide{boxes: link.FastBoxes{Out: there, In: back, Read: &taken[0], Told: &taken[1], Limit: math.MaxUint64,
		OutData: &area[0][0], OutArea: boxArea, InData: &area[1][0], InArea: boxArea}}
	b = &boxSide{boxes: link.FastBoxes{Out: back, In: there, Read: &taken[1], Told: &taken[0], Limit: math.MaxUint64,
		OutData: &area[1][0], OutArea: boxArea, InData: &area[0][0], InArea: boxArea}}
	return a, b
}

func (d *boxSide) FastBoxRoom(n int) *link.EagerMessage { return d.boxes.Room(n) }
func (d *boxSide) PostFastBox(data []byte)              { d.boxes.Post(data, d.written) }
func (d *boxSide) NextFastBox() *link.EagerMessage      { return d.boxes.Next(d.read) }
func (d *boxSide) BegunFastBox() *link.EagerMessage     { return d.boxes.Begun(d.read) }
func (d *boxSide) FastBoxTaken(n uint32)                { d.boxes.Take(n) }
func (d *boxSide) FastBoxesSent() uint64                { return d.boxes.Sent }
func (d *boxSide) FastBoxesCharged() uint64             { return d.boxes.Charged }
func (d *boxSide) FastBoxesTaken() uint64               { return d.boxes.Received }
func (d *boxSide) LimitFastBoxes(n uint64)              { d.boxes.Limit = n }
func (d *boxSide) ReviewFastBoxes(n uint64)             { d.boxes.Review = n }
func (d *boxSide) FastBoxData(m *link.EagerMessage, n uint32) []byte {
	return d.boxes.Content(m, n)
}
func (d *boxSide) FastBoxesAgreed() bool { return !d.alone }

// before is how many of the next n bytes come before the next fast-box message.
func (d *boxSide) before(n int) int {
	if k, ok := d.boxes.Ahead(d.read); ok {
		return min(n, int(k))
	}
	return n
}

// boxed is a pair whose link takes fast-box messages.
type boxed struct {
	*pair
	d [2]*boxSide
}

func newBoxed(tb testing.TB, cfg Config) *boxed {
	p := &boxed{pair: newPair(tb, cfg)}
	p.d[0], p.d[1] = newBoxSides()
	for i, e := range p.e {
		e.UseFastBoxes(0, p.d[i])
	}
	return p
}

// carry moves what has left from one engine to the other, and tells how many bytes
// those were besides fast-box messages.
func (p *boxed) carry(from int) (size int) {
	raw := p.wireBytes(from)
	size = len(raw)
	p.d[from].written += uint64(size)
	to, d := p.e[1-from], p.d[1-from]
	for {
		took, err := to.TakeFastBoxes(0)
		if err != nil {
			p.tb.Fatal(err)
		}
		k := d.before(len(raw))
		put(p.tb, to, 0, raw[:k])
		d.read, raw = d.read+uint64(k), raw[k:]
		if k == 0 && !took {
			return size
		}
	}
}

// now sends a message of p that is to leave as a fast-box message, and checks that it does.
func (p *boxed) now(from int, data []byte) {
	p.tb.Helper()
	l, ok := p.e[from].SendEager(Peer(1-from), Envelope{Rank: wire.CommRank(from), Tag: 7}, data, 1, 0)
	if !ok || l != NoLink || p.e[from].HasOutput(0) {
		p.tb.Fatalf("link %d, %v", l, ok)
	}
}

func TestShortMessageIsAFastBox(t *testing.T) {
	for n, want := range map[int]bool{0: true, 1: true, 32: true, link.InFastBox: true, link.InFastBox + 1: true, longestBox: true, longestBox + 1: false} {
		p := newBoxed(t, roomy)
		buf := make([]byte, longestBox+1)
		r := p.recv(1, buf)
		s := p.send(0, Standard, alphabet(n))
		if !s.Done() || s.Err() != nil || p.e[0].SentTo(1) != 1 {
			t.Fatalf("%d bytes: done %v, %v", n, s.Done(), s.Err())
		}
		if size := p.carry(0); (size == 0) != want {
			t.Errorf("%d bytes: a packet of %d", n, size)
		}
		want := Status{Source: 0, Peer: 0, Tag: 7, Len: int64(n)}
		if !r.Done() || r.Status() != want || !bytes.Equal(buf[:n], alphabet(n)) {
			t.Errorf("%d bytes: received %v, %+v", n, r.Done(), r.Status())
		}
		if !p.e[0].Idle() || !p.e[1].Idle() {
			t.Errorf("%d bytes: something is left to do", n)
		}
	}
}

func TestModesOfFastBoxes(t *testing.T) {
	p := newBoxed(t, roomy)
	if err := p.e[0].BufferSpace().Attach(BsendOverhead + 10); err != nil {
		t.Fatal(err)
	}
	for i, m := range []Mode{Standard, Ready, Buffered, Buffered, Synchronous} {
		r := p.recv(1, make([]byte, 10))
		s := p.send(0, m, alphabet(10))
		if s.Done() != (m != Synchronous) || s.Err() != nil {
			t.Fatalf("%d: done %v, %v", i, s.Done(), s.Err())
		}
		if size := p.carry(0); (size > 0) != (m == Synchronous) || !r.Done() || r.Status().Len != 10 {
			t.Errorf("%d: %d bytes, received %v", i, size, r.Done())
		}
	}
	if n := p.e[0].BufferSpace().Used(); n != 0 {
		t.Errorf("%d bytes of the buffer are taken", n)
	}
}

func TestFastBoxThatNobodyAwaits(t *testing.T) {
	p := newBoxed(t, roomy)
	for i := range 4 {
		p.now(0, alphabet(20+i))
	}
	p.carry(0)
	exact := Envelope{Rank: 0, Tag: 7}
	want := Status{Tag: 7, Len: 20}
	if st, ok := p.e[1].Probe(exact, 0); !ok || st != want {
		t.Errorf("probed %v, %+v", ok, st)
	}
	if _, ok := p.e[1].Probe(Envelope{Rank: 0, Tag: 8}, 0); ok {
		t.Error("there is another one")
	}
	buf := make([]byte, 50)
	receive := func(r *Request, n int, err error) {
		t.Helper()
		if !r.Done() || !errors.Is(r.Err(), err) || r.Status().Len != int64(n) || !bytes.Equal(buf[:n], alphabet(n)) {
			t.Errorf("received %v, %+v", r.Done(), r.Status())
		}
	}
	receive(p.recv(1, buf), 20, nil)
	receive(p.recv(1, buf[:5]), 5, ErrTruncate)
	receive(p.e[1].Recv(Envelope{Rank: AnySource, Tag: AnyTag}, NoPeer, buf), 22, nil)
	m, st, ok := p.e[1].Take(exact, 0)
	if !ok || st.Len != 23 {
		t.Fatalf("took %v, %+v", ok, st)
	}
	receive(p.e[1].RecvMessage(m, buf), 23, nil)
}

// A fast-box message that is longer than its receive is truncated.
func TestTruncatedFastBox(t *testing.T) {
	p := newBoxed(t, roomy)
	buf := alphabet(10)
	clear(buf[4:])
	r := p.e[1].Recv(Envelope{Rank: AnySource, Tag: AnyTag}, NoPeer, buf[:4])
	sink := &gathered{tb: t, data: make([]byte, 50)}
	q := p.e[1].RecvInto(Envelope{Rank: 0, Tag: 7}, 0, sink)
	p.now(0, alphabet(10))
	p.now(0, alphabet(11))
	p.carry(0)
	if !r.Done() || !errors.Is(r.Err(), ErrTruncate) || r.Status().Len != 4 || !bytes.Equal(buf, append(alphabet(4), 0, 0, 0, 0, 0, 0)) {
		t.Errorf("received %v, %+v, %q", r.Done(), r.Status(), buf)
	}
	if !q.Done() || q.Err() != nil || !bytes.Equal(sink.data[:11], alphabet(11)) {
		t.Errorf("into a sink: %v, %+v", q.Done(), q.Status())
	}
}

// Messages match in the order in which they were sent, whether they are fast-box messages
// or packets.
func TestFastBoxesAndPacketsKeepTheirOrder(t *testing.T) {
	for _, c := range []Config{roomy, {MaxData: 64, AckMark: 1, HiWater: 1}, {MaxData: 50, AckMark: 2, HiWater: 4, StageLimit: 10}} {
		for _, early := range []bool{true, false} {
			p := newBoxed(t, c)
			sizes := []int{3, 200, 1, 2, longestBox, longestBox + 1, 5, 5000, 0, 0, 70000, 4, 100, 6}
			sizes = append(append(sizes, sizes...), sizes...)
			var rs []*Request
			post := func() {
				for range sizes {
					rs = append(rs, p.recv(1, make([]byte, 1<<17)))
				}
			}
			if early {
				post()
			}
			for i, n := range sizes {
				p.send(0, Standard, alphabet(n))
				if i%5 == 0 {
					p.carry(0)
					p.carry(1)
				}
			}
			if !early {
				post()
			}
			for p.carry(0) > 0 || p.carry(1) > 0 {
			}
			for i, r := range rs {
				if !r.Done() || r.Status().Len != int64(sizes[i]) {
					t.Fatalf("%+v, early %v: message %d: %v, %+v", c, early, i, r.Done(), r.Status())
				}
			}
			if sent := p.d[0].boxes.Sent; sent == 0 || sent == uint64(len(sizes)) {
				t.Errorf("%+v, early %v: %d fast-box messages", c, early, sent)
			}
		}
	}
}

// A fast-box message does not overtake anything that waits to leave, for whatever reason.
func TestNoFastBoxBeforeWhatWaits(t *testing.T) {
	for name, set := range map[string]func(p *boxed){
		"committed": func(p *boxed) { p.send(0, Standard, make([]byte, longestBox+1)) },
		"in place": func(p *boxed) {
			p.e[0].InPlace(0, &room{mem: make([]byte, 1000)})
			p.send(0, Standard, make([]byte, longestBox+1))
		},
		"for the window": func(p *boxed) {
			for range 2 {
				p.send(0, Standard, make([]byte, longestBox+1))
			}
			p.wireBytes(0)
		},
	} {
		p := newBoxed(t, Config{MaxData: 500, AckMark: 1, HiWater: 1})
		set(p)
		p.e[0].SendEager(1, Envelope{Rank: 0, Tag: 7}, alphabet(8), 1, 0)
		p.send(0, Standard, alphabet(8))
		if n := p.d[0].boxes.Sent; n != 0 {
			t.Errorf("%s: %d fast-box messages", name, n)
		}
	}
}

// A message that a Source packs is a packet, however short it is.
func TestNothingIsPackedIntoAFastBox(t *testing.T) {
	p := newBoxed(t, roomy)
	p.e[0].SendFrom(1, Envelope{Rank: 0, Tag: 7}, Standard, &strewn{tb: t, data: alphabet(10)}, 10, 10, 0)
	p.carry(0)
	buf := make([]byte, 10)
	if r := p.recv(1, buf); !r.Done() || r.Status().Len != 10 || !bytes.Equal(buf, alphabet(10)) {
		t.Errorf("received %v, %+v, %q", r.Done(), r.Status(), buf)
	}
}

// A fast-box message has no request ID of its sender, so a CANCEL for another message does
// not find it.
func TestFastBoxIsNotCancelledForAnother(t *testing.T) {
	p := newBoxed(t, roomy)
	s := p.send(0, Synchronous, alphabet(8))
	p.carry(0)
	p.now(0, alphabet(9))
	p.carry(0)
	p.e[0].Cancel(s)
	for p.carry(0) > 0 || p.carry(1) > 0 {
	}
	if r := p.recv(1, make([]byte, 9)); !s.Status().Cancelled || !r.Done() || r.Status().Len != 9 {
		t.Errorf("cancelled %v, received %v, %+v", s.Status().Cancelled, r.Done(), r.Status())
	}
}

// Fast-box messages are not acknowledged, and do not count for flow control.
func TestFastBoxesAreNotAcknowledged(t *testing.T) {
	p := newBoxed(t, Config{MaxData: 64, AckMark: 1, HiWater: 1})
	for i := range 100 {
		r := p.recv(1, make([]byte, 8))
		p.now(0, alphabet(8))
		p.carry(0)
		if !r.Done() || p.e[1].HasOutput(0) {
			t.Fatalf("fast-box message %d: received %v, answered %v", i, r.Done(), p.e[1].HasOutput(0))
		}
	}
}

func TestNoRoomForAFastBox(t *testing.T) {
	p := newBoxed(t, roomy)
	for range link.FastBoxCount {
		p.now(0, alphabet(8))
	}
	if s := p.send(0, Standard, alphabet(9)); !s.Done() || !p.e[0].HasOutput(0) {
		t.Error("it is no packet")
	}
	if size := p.carry(0); size != headerSize+9 {
		t.Errorf("%d bytes", size)
	}
	p.now(0, alphabet(8))
	p.carry(0)
	for i := range link.FastBoxCount + 2 {
		want := int64(8)
		if i == link.FastBoxCount {
			want = 9 // the packet
		}
		if r := p.recv(1, make([]byte, 9)); !r.Done() || r.Status().Len != want {
			t.Fatalf("message %d: %v, %+v", i, r.Done(), r.Status())
		}
	}
}

// endless is a link on which there is always another fast-box message.
type endless struct{ boxSide }

func (d *endless) NextFastBox() *link.EagerMessage { return &link.EagerMessage{Len: 1, Tag: 7} }
func (d *endless) FastBoxTaken(uint32)             {}

func TestFastBoxesWithoutEnd(t *testing.T) {
	p := newPair(t, roomy)
	p.e[0].UseFastBoxes(0, &endless{})
	for range 2 {
		if progress, err := p.e[0].TakeFastBoxes(0); !progress || err != nil {
			t.Fatal(progress, err)
		}
	}
	if n, _ := p.e[0].Waiting(); n > 2*link.FastBoxCount {
		t.Errorf("%d fast-box messages at a time", n/2)
	}
}

func TestBadFastBoxes(t *testing.T) {
	good := link.EagerMessage{Len: 5, Tag: 7}
	packet := func(h wire.Packet) []byte {
		h.Src, h.Dest, h.Tag = wire.Proc{PID: 1}, wire.Proc{PID: 2}, 9
		b := make([]byte, headerSize)
		wire.Published.PutHeader(b, &h)
		return b
	}
	data := append(packet(wire.Packet{Type: wire.PkData, Len: 10, MsgLen: 10}), alphabet(10)...)
	fini := packet(wire.Packet{Type: wire.PkFini})
	for name, c := range map[string]struct {
		before []byte
		msg    link.EagerMessage
		field  string
	}{
		"too long":                  {nil, link.EagerMessage{Len: longestBox + 1, Tag: 7}, "length"},
		"outside the memory":        {nil, link.EagerMessage{Len: longestBox, Tag: 7, Data: [link.InFastBox]byte{1, boxArea * 3 / 4 >> 8}}, "length"},
		"far too long":              {nil, link.EagerMessage{Len: 1<<32 - 1, Tag: 7}, "length"},
		"no tag":                    {nil, link.EagerMessage{Len: 5, Tag: int32(wire.TagOutOfRange)}, "pk_tag"},
		"in the middle of a header": {data[:1], good, "place"},
		"behind a header":           {data[:headerSize], good, "place"},
		"in the middle of data":     {data[:headerSize+9], good, "place"},
		"after FINI":                {fini, good, "place"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newBoxed(t, roomy)
			put(t, p.e[1], 0, c.before)
			q := p.recv(1, make([]byte, 100))
			for _, n := range []link.EagerMessage{c.msg, good} {
				m := p.d[0].FastBoxRoom(0)
				p.d[0].PostFastBox(nil)
				*m = n
			}
			_, err := p.e[1].TakeFastBoxes(0)
			var bad *ProtocolError
			if !errors.As(err, &bad) || bad.Peer != 0 || bad.Link != 0 || bad.Field != c.field || bad.Reason == "" {
				t.Fatalf("%v", err)
			}
			if progress, again := p.e[1].TakeFastBoxes(0); progress || !errors.Is(again, bad) {
				t.Errorf("then %v, %v", progress, again)
			}
			p.e[1].Cancel(q)
			if !q.Status().Cancelled {
				t.Error("it was received")
			}
			if st, ok := p.e[1].RecvEager(0, &Envelope{Rank: 0, Tag: 7}, make([]byte, 100)); ok {
				t.Errorf("what comes behind it: %+v", st)
			}
			if p.send(1, Standard, nil); p.d[1].boxes.Sent != 0 {
				t.Error("a fast-box message leaves by a link that is of no use any more")
			}
			p.e[1].Detach(0, err)
			if p.e[1].Unreachable(0) == nil {
				t.Error("the peer is not down")
			}
		})
	}
	p := newBoxed(t, roomy) // whole packets before it are no fault
	put(t, p.e[1], 0, data)
	m := p.d[0].FastBoxRoom(5)
	m.Tag = good.Tag
	p.d[0].PostFastBox(make([]byte, 5))
	if progress, err := p.e[1].TakeFastBoxes(0); !progress || err != nil {
		t.Errorf("%v, %v", progress, err)
	}
}

// recvEager is RecvEager from peer 0, which EagerLink must allow.
func (p *boxed) recvEager(env Envelope, buf []byte) (Status, bool) {
	p.tb.Helper()
	l, ok := p.e[1].EagerLink(0)
	if !ok || l != 0 {
		p.tb.Fatalf("link %d, %v", l, ok)
	}
	return p.e[1].RecvEager(l, &env, buf)
}

func TestRecvEager(t *testing.T) {
	p := newBoxed(t, roomy)
	buf := make([]byte, 50)
	if st, ok := p.recvEager(Envelope{Rank: 0, Tag: 7}, buf); ok {
		t.Fatalf("got %+v", st)
	}
	for n, tag := range []wire.Tag{7, AnyTag} {
		p.now(0, alphabet(n+9))
		want := Status{Source: 0, Peer: 0, Tag: 7, Len: int64(n + 9)}
		if st, ok := p.recvEager(Envelope{Rank: 0, Tag: tag}, buf[:n+9]); !ok || st != want || !bytes.Equal(buf[:n+9], alphabet(n+9)) {
			t.Errorf("got %v, %+v", ok, st)
		}
		if st, ok := p.recvEager(Envelope{Rank: 0, Tag: tag}, buf); ok {
			t.Fatalf("got it once more: %+v", st)
		}
	}
	if n, _ := p.e[1].Waiting(); n != 0 || p.e[1].unexpected.Len() != 0 {
		t.Error("something is kept")
	}
}

// If RecvEager refuses, nothing has changed.
func TestRecvEagerRefuses(t *testing.T) {
	good := Envelope{Rank: 0, Tag: 7}
	for name, c := range map[string]struct {
		env  Envelope
		room int
		set  func(p *boxed)
	}{
		"another context":   {Envelope{Context: 1, Tag: 7}, 50, nil},
		"another rank":      {Envelope{Rank: 1, Tag: 7}, 50, nil},
		"another tag":       {Envelope{Tag: 8}, 50, nil},
		"any source":        {Envelope{Rank: AnySource, Tag: 7}, 50, nil},
		"no room":           {good, 8, nil},
		"behind a packet":   {good, 50, func(p *boxed) { p.d[1].read-- }},
		"in a packet":       {good, 50, func(p *boxed) { p.e[1].link(0).w++ }},
		"in a payload":      {good, 50, func(p *boxed) { p.e[1].link(0).payload = true }},
		"after FINI":        {good, 50, func(p *boxed) { p.e[1].link(0).fini = true }},
		"after a fault":     {good, 50, func(p *boxed) { p.e[1].link(0).err = ErrProtocol }},
		"peer that is down": {good, 50, func(p *boxed) { p.e[1].PeerDown(0, errCut) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newBoxed(t, roomy)
			p.now(0, alphabet(9))
			if c.set != nil {
				c.set(p)
			}
			buf := make([]byte, 50)
			if st, ok := p.recvEager(c.env, buf[:c.room]); ok {
				t.Fatalf("got %+v", st)
			}
			if !bytes.Equal(buf, make([]byte, 50)) || p.d[1].boxes.Taken != 0 {
				t.Error("it has taken something")
			}
		})
	}
	p := newBoxed(t, roomy)
	p.now(0, alphabet(9))
	p.recvEager(good, nil)
	p.carry(0)
	if r := p.recv(1, make([]byte, 9)); !r.Done() || r.Status().Len != 9 {
		t.Errorf("the refused one: %v, %+v", r.Done(), r.Status())
	}
}

// EagerLink refuses if something else has to be done first, or if another message could match.
func TestNoEagerLink(t *testing.T) {
	cause := errors.New("for the test")
	for name, set := range map[string]func(p *boxed){
		"a receive waits":       func(p *boxed) { p.recv(1, nil) },
		"a message waits":       func(p *boxed) { p.now(0, nil); p.carry(0) },
		"a send is not through": func(p *boxed) { p.send(1, Synchronous, nil); p.wireBytes(1) },
		"a packet is to leave":  func(p *boxed) { p.send(1, Standard, make([]byte, longestBox+1)) },
		"the link is gone":      func(p *boxed) { p.e[1].Detach(0, cause) },
	} {
		p := newBoxed(t, roomy)
		if _, ok := p.e[1].EagerLink(0); !ok {
			t.Fatal("streak is not possible")
		}
		set(p)
		if l, ok := p.e[1].EagerLink(0); ok {
			t.Errorf("%s: link %d", name, l)
		}
	}
	p := newBoxed(t, roomy)
	for _, from := range []Peer{NoPeer, 1, 2} {
		if _, ok := p.e[1].EagerLink(from); ok {
			t.Errorf("from %d", from)
		}
	}
	if _, ok := newPair(t, roomy).e[1].EagerLink(0); ok {
		t.Error("by a link without fast-box messages")
	}
}

// In the draft's dialect there are no fast-box messages.
func TestDraftTakesNoFastBoxs(t *testing.T) {
	c := roomy
	c.Dialect = wire.Draft
	p := newBoxed(t, c)
	if l, ok := p.e[0].SendEager(1, Envelope{Rank: 0, Tag: 7}, alphabet(8), 8, 0); !ok || l != 0 {
		t.Errorf("link %d, %v", l, ok)
	}
	if _, ok := p.e[0].EagerLink(1); ok || !p.e[0].HasOutput(0) {
		t.Error("no packet leaves")
	}
}

func TestFastBoxesOfWhoIsGone(t *testing.T) {
	p := newBoxed(t, roomy)
	p.now(0, alphabet(8))
	p.carry(0)
	p.now(0, alphabet(8))
	p.e[1].PeerDown(0, errCut)
	if progress, err := p.e[1].TakeFastBoxes(0); !progress || err != nil {
		t.Errorf("%v, %v", progress, err)
	}
	if n := p.e[1].Counters().LatePackets; n != 1 {
		t.Errorf("%d were late", n)
	}
	if r := p.recv(1, make([]byte, 8)); !r.Done() || r.Err() != nil {
		t.Error("what came in time is lost")
	}
	if r := p.recv(1, make([]byte, 8)); !errors.Is(r.Err(), ErrPeerDown) {
		t.Errorf("received %v, %+v", r.Done(), r.Status())
	}
	if s := p.send(1, Standard, nil); !errors.Is(s.Err(), ErrPeerDown) || p.d[1].boxes.Sent != 0 {
		t.Errorf("sent: %v", s.Err())
	}
}

func TestFastBoxesAllocateNothing(t *testing.T) {
	p := newBoxed(t, roomy)
	if err := p.e[0].BufferSpace().Attach(1 << 20); err != nil {
		t.Fatal(err)
	}
	data, buf, env := alphabet(90), make([]byte, 90), Envelope{Rank: 0, Tag: 7}
	for name, message := range map[string]func() *Request{
		"awaited": func() *Request {
			r := p.recv(1, buf)
			p.now(0, data)
			p.carry(0)
			return r
		},
		"unexpected": func() *Request {
			p.now(0, data)
			p.carry(0)
			return p.recv(1, buf)
		},
		"sent with a request": func() *Request {
			for _, m := range []Mode{Standard, Buffered} {
				p.e[0].Release(p.send(0, m, data))
				p.carry(0)
				p.e[1].Release(p.recv(1, buf))
			}
			return nil
		},
		"at once": func() *Request {
			p.now(0, data)
			if _, ok := p.recvEager(env, buf); !ok {
				t.Fatal("not received")
			}
			return nil
		},
	} {
		round := func() {
			if r := message(); r != nil {
				if !r.Done() || r.Status().Len != 90 {
					t.Fatal("not received")
				}
				p.e[1].Release(r)
			}
		}
		for range 100 {
			round()
		}
		if n := testing.AllocsPerRun(200, round); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestWhatIsSaidOfItems: the count and type of a message's items come with packets, to
// receives of all kinds, and never with a fast-box message. A type that does not fit into a
// fast box makes the message a packet.
func TestWhatIsSaidOfItems(t *testing.T) {
	const said = 1<<63 | 5
	told := func(what string, r *Request, want uint64) {
		t.Helper()
		if n, dtype := r.Sent(); !r.Done() || dtype != want || want != 0 && n != 3 {
			t.Errorf("%s: done %v, %d of %#x, want %#x", what, r.Done(), n, dtype, want)
		}
	}
	p := newBoxed(t, roomy)
	env := Envelope{Rank: 0, Tag: 7}
	posted := p.recv(1, make([]byte, 8))
	p.e[0].Send(1, env, Standard, alphabet(8), 3, said)
	if p.carry(0) == 0 {
		t.Error("it was a fast-box message")
	}
	told("posted", posted, said)
	if l, ok := p.e[0].SendEager(1, env, alphabet(8), 3, said); !ok || l == NoLink {
		t.Errorf("it left by %d, %v", l, ok)
	}
	p.carry(0)
	told("unexpected", p.recv(1, make([]byte, 8)), said)
	own := p.e[1].Recv(Envelope{Rank: 1, Tag: 7}, 1, make([]byte, 8))
	p.e[1].Send(1, Envelope{Rank: 1, Tag: 7}, Standard, alphabet(8), 3, said)
	told("to itself", own, said)
	p.e[1].Send(1, Envelope{Rank: 1, Tag: 7}, Standard, alphabet(8), 3, said)
	told("to itself, before", p.e[1].Recv(Envelope{Rank: 1, Tag: 7}, 1, make([]byte, 8)), said)
	msg := p.recv(1, make([]byte, 8))
	p.now(0, alphabet(8))
	p.carry(0)
	told("a fast-box message", msg, 0)
}

// TestFastBoxesOfALinkThatIsGone: they stay counted, also when another link follows.
func TestFastBoxesOfALinkThatIsGone(t *testing.T) {
	p := newBoxed(t, roomy)
	for range 3 {
		p.now(0, alphabet(8))
	}
	if n := p.e[0].SentTo(1); n != 3 {
		t.Fatalf("%d messages were sent, not 3", n)
	}
	p.e[0].Detach(0, io.EOF)
	if n := p.e[0].SentTo(1); n != 3 {
		t.Errorf("after the link's end, %d messages were sent, not 3", n)
	}
}
