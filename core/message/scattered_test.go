package message

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// failer is a testing.TB or a rapid.T.
type failer interface{ Fatalf(string, ...any) }

// strewn is a Source that makes sure of being asked for each byte once, in order.
type strewn struct {
	tb   failer
	data []byte
	next int64
	dsts [][]byte
}

func (s *strewn) Pack(dst []byte, off int64) {
	if off != s.next || len(dst) == 0 || off+int64(len(dst)) > int64(len(s.data)) {
		s.tb.Fatalf("asked for %d bytes from %d of %d, %d is next", len(dst), off, len(s.data), s.next)
	}
	s.next += int64(copy(dst, s.data[off:]))
	s.dsts = append(s.dsts, dst)
}

// gathered is a Sink that makes sure of getting each byte that fits once, in order.
type gathered struct {
	tb      failer
	data    []byte
	next    int64
	matched bool
	from    Peer
	total   int64
	srcs    [][]byte
}

func (g *gathered) Matched(from Peer, total int64) int64 {
	if g.matched {
		g.tb.Fatalf("matched twice")
	}
	g.matched, g.from, g.total = true, from, total
	return int64(len(g.data))
}

func (g *gathered) Unpack(src []byte, off int64) {
	if !g.matched || off != g.next || len(src) == 0 || off+int64(len(src)) > int64(len(g.data)) {
		g.tb.Fatalf("matched %v, got %d bytes from %d of %d, %d is next", g.matched, len(src), off, len(g.data), g.next)
	}
	g.next += int64(copy(g.data[off:], src))
	g.srcs = append(g.srcs, src)
}

// within reports whether b lies in mem.
func within(b, mem []byte) bool {
	for i := range mem {
		if &b[0] == &mem[i] {
			return len(b) <= len(mem)-i
		}
	}
	return false
}

var scatterEnv = Envelope{Rank: 0, Tag: 7}

func (p *pair) sendFrom(s *strewn, mode Mode) *Request {
	return p.e[0].SendFrom(1, scatterEnv, mode, s, int64(len(s.data)), 1, 0)
}

func (p *pair) recvInto(g *gathered) *Request { return p.e[1].RecvInto(scatterEnv, 0, g) }

// Every way that a message can take, between all combinations of memory, Source
// and Sink, and with every length around the limits.
func TestSourcesAndSinks(t *testing.T) {
	for _, cfg := range []Config{
		{MaxData: 64, AckMark: 2, HiWater: 4},
		{MaxData: 65536, AckMark: 64, HiWater: 256},
		{MaxData: 300_000, AckMark: 64, HiWater: 256}, // a packet is larger than staging memory
	} {
		d := int(cfg.MaxData)
		for _, n := range []int{0, 1, 63, d - 1, d, d + 1, 3*d + 5} {
			for _, mode := range []Mode{Standard, Synchronous, Buffered, Ready} {
				for _, late := range []bool{false, true} {
					checkScattered(t, cfg, n, mode, late)
				}
			}
		}
	}
}

func checkScattered(t *testing.T, cfg Config, n int, mode Mode, late bool) {
	t.Helper()
	for way := range 3 { // source to memory, memory to sink, source to sink
		p := newPair(t, cfg)
		if err := p.e[0].BufferSpace().Attach(1 << 30); err != nil {
			t.Fatal(err)
		}
		data := alphabet(n)
		g := &gathered{tb: t, data: make([]byte, n)}
		recv := func() *Request {
			if way == 0 {
				return p.recv(1, g.data)
			}
			return p.recvInto(g)
		}
		var s, r *Request
		if !late {
			r = recv()
		}
		if way == 1 {
			s = p.send(0, mode, data)
		} else {
			s = p.sendFrom(&strewn{tb: t, data: data}, mode)
		}
		if late {
			p.settle()
			r = recv()
		}
		p.settle()
		if !s.Done() || !r.Done() || r.Err() != nil || r.Status().Len != int64(n) || !bytes.Equal(g.data, data) {
			t.Fatalf("way %d, %d bytes in packets of %d, mode %d, late %v: %v %v %+v", way, n, cfg.MaxData, mode, late, s.Done(), r.Done(), r.Status())
		}
		if way > 0 && (g.from != 0 || g.total != int64(n)) {
			t.Fatalf("matched with %d bytes of peer %d", g.total, g.from)
		}
		if !p.e[0].Idle() {
			t.Fatal("not idle")
		}
	}
}

func TestSinkTruncates(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, room := range []int{0, 10, 64, 100, 199} {
			p := newPair(t, Config{MaxData: 64, AckMark: 2, HiWater: 4})
			g := &gathered{tb: t, data: make([]byte, room)}
			var r *Request
			if !late {
				r = p.recvInto(g)
			}
			p.send(0, Standard, alphabet(200))
			p.settle()
			if late {
				r = p.recvInto(g)
				p.settle()
			}
			if !errors.Is(r.Err(), ErrTruncate) || r.Status().Len != int64(room) || !bytes.Equal(g.data, alphabet(200)[:room]) {
				t.Errorf("room for %d, late %v: %+v %q", room, late, r.Status(), g.data)
			}
		}
	}
}

// What a Source packs is packed where it leaves from: once.
func TestSourcePacksInPlace(t *testing.T) {
	p := newPair(t, roomy)
	space := &room{mem: make([]byte, 150_000)}
	p.e[0].InPlace(0, space)
	p.recv(1, make([]byte, 65536))
	s := &strewn{tb: t, data: alphabet(65536)}
	r := p.sendFrom(s, Standard)
	if out := p.e[0].Output(0); len(out) != 0 || !r.Done() {
		t.Errorf("%d bytes leave by other ways, done %v", total(out), r.Done())
	}
	if len(s.dsts) != 1 || !within(s.dsts[0], space.mem) || !bytes.Equal(space.mem[headerSize:headerSize+65536], s.data) {
		t.Error("not packed into the link's memory")
	}
}

// Where the link's memory has room for a part, that part is packed there, and
// little of the rest anywhere else.
func TestSourcePacksInPiecesInPlace(t *testing.T) {
	p := newPair(t, roomy)
	space := &room{mem: make([]byte, 40_000)}
	p.e[0].InPlace(0, space)
	s := &strewn{tb: t, data: alphabet(60_000)}
	p.sendFrom(s, Standard)
	p.send(0, Standard, alphabet(65536)) // has to wait its turn
	var came []byte
	take := func() {
		out := p.e[0].Output(0)
		came = append(came, space.mem[:space.used]...)
		space.used = 0
		if beside := total(out); beside > packBeside+headerSize && int64(len(s.data)) > s.next {
			t.Fatalf("%d bytes beside the link's memory", beside)
		}
		if int64(len(s.data)) > s.next && p.e[0].link(0).segments.len > 1 {
			t.Fatal("the next packet is committed, and cannot be put into the link's memory any more")
		}
		came = append(came, bytes.Join(out, nil)...)
		p.e[0].Sent(0, total(out))
	}
	for p.e[0].HasOutput(0) {
		take()
	}
	if !bytes.Equal(came[headerSize:headerSize+60_000], s.data) || !bytes.Equal(came[2*headerSize+60_000:], alphabet(65536)) {
		t.Error("the packets are not what was sent")
	}
	inside := 0
	for _, d := range s.dsts {
		if within(d, space.mem) {
			inside += len(d)
		}
	}
	if inside < 50_000 {
		t.Errorf("%d bytes packed in place", inside)
	}
}

// However large packets are, what is packed and has not left is bounded.
func TestSourceStagingIsBounded(t *testing.T) {
	p := newPair(t, Config{MaxData: 1 << 20, AckMark: 64, HiWater: 256})
	s := &strewn{tb: t, data: alphabet(1 << 20)}
	p.sendFrom(s, Standard)
	out := p.e[0].Output(0)
	if n := total(out); n > stageSize+headerSize || s.next > stageSize {
		t.Errorf("%d bytes at a time, %d packed", n, s.next)
	}
	again := p.e[0].Output(0)
	if !slices.EqualFunc(out, again, same) {
		t.Error("output that nobody took is another the second time: it might be lent")
	}
	var came []byte
	for k := 1; p.e[0].HasOutput(0); k = k*3%70_001 + 1 { // odd pieces
		out := bytes.Join(p.e[0].Output(0), nil)
		k = min(k, len(out))
		came = append(came, out[:k]...)
		p.e[0].Sent(0, k)
	}
	if !bytes.Equal(came[headerSize:], s.data) {
		t.Error("the packet is not what was sent")
	}
}

// A Sink gets a packet's bytes from where they arrived.
func TestSinkUnpacksInPlace(t *testing.T) {
	p := newPair(t, roomy)
	p.send(0, Standard, alphabet(50_000))
	arrived := bytes.Join(p.e[0].Output(0), nil)
	g := &gathered{tb: t, data: make([]byte, 50_000)}
	r := p.recvInto(g)
	if n, err := p.e[1].Arrived(0, arrived); n != len(arrived) || err != nil || !r.Done() {
		t.Fatal(n, err)
	}
	if len(g.srcs) != 1 || !within(g.srcs[0], arrived) {
		t.Error("unpacked from elsewhere")
	}
}

// A packet that began to arrive by itself goes on from the link's memory.
func TestSinkGoesOnInPlace(t *testing.T) {
	p := newPair(t, roomy)
	p.send(0, Standard, alphabet(50_000))
	p.send(0, Standard, alphabet(10))
	arrived := bytes.Join(p.e[0].Output(0), nil)
	g := &gathered{tb: t, data: make([]byte, 50_000)}
	r, next := p.recvInto(g), p.recv(1, make([]byte, 10))
	k := copy(p.e[1].Input(0)[0], arrived[:headerSize+100])
	if err := p.e[1].Received(0, k); err != nil {
		t.Fatal(err)
	}
	if n, err := p.e[1].Arrived(0, arrived[k:20_000]); n != 20_000-k || err != nil || r.Done() {
		t.Fatal(n, err)
	}
	if n, err := p.e[1].Arrived(0, arrived[20_000:]); n != len(arrived)-20_000 || err != nil || !r.Done() || !next.Done() {
		t.Fatal(n, err)
	}
	if !bytes.Equal(g.data, alphabet(50_000)) || len(g.srcs) != 3 || !within(g.srcs[2], arrived) {
		t.Error("unpacked from elsewhere")
	}
}

func TestScatteredToOneself(t *testing.T) {
	for _, n := range []int{0, 5, 64, 100, 3*packAhead + 1} {
		for _, mode := range []Mode{Standard, Synchronous, Buffered} {
			for _, late := range []bool{false, true} {
				e := newPair(t, Config{MaxData: 64, AckMark: 2, HiWater: 4}).e[0]
				if err := e.BufferSpace().Attach(1 << 20); err != nil {
					t.Fatal(err)
				}
				s, g := &strewn{tb: t, data: alphabet(n)}, &gathered{tb: t, data: make([]byte, n)}
				var r *Request
				if !late {
					r = e.RecvInto(scatterEnv, 0, g)
				}
				q := e.SendFrom(0, scatterEnv, mode, s, int64(n), 1, 0)
				if late {
					r = e.RecvInto(scatterEnv, 0, g)
				}
				if !q.Done() || !r.Done() || !bytes.Equal(g.data, s.data) {
					t.Errorf("%d bytes, mode %d, late %v: %v %v", n, mode, late, q.Done(), r.Done())
				}
			}
		}
	}
}

func TestScatteredToOneselfTruncates(t *testing.T) {
	e := newPair(t, roomy).e[0]
	g := &gathered{tb: t, data: make([]byte, 7)}
	r := e.RecvInto(scatterEnv, 0, g)
	e.SendFrom(0, scatterEnv, Standard, &strewn{tb: t, data: alphabet(10)}, 10, 1, 0)
	if !errors.Is(r.Err(), ErrTruncate) || !bytes.Equal(g.data, alphabet(7)) {
		t.Errorf("%+v", r.Status())
	}
}

// A matched message is received into a Sink like any other.
func TestTakenIntoSink(t *testing.T) {
	p := newPair(t, Config{MaxData: 64, AckMark: 2, HiWater: 4})
	p.sendFrom(&strewn{tb: t, data: alphabet(150)}, Standard)
	p.settle()
	m, _, ok := p.e[1].Take(scatterEnv, NoPeer)
	if !ok {
		t.Fatal("nothing came")
	}
	g := &gathered{tb: t, data: make([]byte, 150)}
	r := p.e[1].RecvMessageInto(m, g)
	p.settle()
	if !r.Done() || !bytes.Equal(g.data, alphabet(150)) {
		t.Errorf("%+v", r.Status())
	}
}

func TestScatteredCancels(t *testing.T) {
	p := newPair(t, Config{MaxData: 64, AckMark: 2, HiWater: 4})
	s := &strewn{tb: t, data: alphabet(150)}
	q := p.sendFrom(s, Standard)
	p.settle()
	p.e[0].Cancel(q)
	p.settle()
	if !q.Status().Cancelled || s.next != 64 {
		t.Errorf("cancelled %v, %d bytes packed", q.Status().Cancelled, s.next)
	}
	g := &gathered{tb: t, data: make([]byte, 150)}
	r := p.recvInto(g)
	p.e[1].Cancel(r)
	if !r.Status().Cancelled || g.matched {
		t.Error("the receive is not cancelled")
	}
}

// What is committed leaves whole, out of memory that is not the user's, when the
// peer is gone in the middle of it: others share the link.
func TestScatteredPeerDown(t *testing.T) {
	directory := directoryOf(t, wire.Proc{PID: 1}, wire.Proc{PID: 2}, wire.Proc{PID: 3})
	e, err := New(Config{Directory: directory, MaxData: 1 << 20, AckMark: 4, HiWater: 8})
	if err != nil {
		t.Fatal(err)
	}
	e.Attach(0)
	e.SetRoute(1, 0)
	e.SetRoute(2, 0)
	s := &strewn{tb: t, data: alphabet(200_000)}
	want := slices.Clone(s.data)
	q := e.SendFrom(1, scatterEnv, Standard, s, 200_000, 1, 0)
	e.Send(2, scatterEnv, Standard, alphabet(5000), 1, 0)
	var came []byte
	take := func(most int) {
		out := bytes.Join(e.Output(0), nil)
		k := min(most, len(out))
		came = append(came, out[:k]...)
		e.Sent(0, k)
	}
	take(1000)
	e.Output(0) // more is packed
	e.PeerDown(1, errCut)
	if !q.Done() || !errors.Is(q.Err(), ErrPeerDown) {
		t.Fatalf("the send has not failed: %v", q.Err())
	}
	clear(s.data)
	e.Release(q)
	for e.HasOutput(0) {
		take(7777)
	}
	if !bytes.Equal(came[headerSize:headerSize+200_000], want) || !bytes.Equal(came[len(came)-5000:], alphabet(5000)) {
		t.Error("the packets are not what was sent")
	}
	if !e.Idle() {
		t.Error("not idle")
	}
}

func TestScatteredAllocatesNothing(t *testing.T) {
	for _, n := range []int{0, 100, 30_000, 300_000} {
		p := newPair(t, roomy)
		s, g := &strewn{tb: t, data: alphabet(n)}, &gathered{tb: t, data: make([]byte, n)}
		message := func() {
			s.next, s.dsts = 0, s.dsts[:0]
			g.next, g.srcs, g.matched = 0, g.srcs[:0], false
			r, q := p.recvInto(g), p.sendFrom(s, Standard)
			p.settle()
			if !q.Done() || !r.Done() {
				t.Fatal("not done")
			}
			p.e[0].Release(q)
			p.e[1].Release(r)
		}
		for range 300 {
			message()
		}
		if a := testing.AllocsPerRun(100, message); a != 0 {
			t.Errorf("%v allocations for a message of %d bytes", a, n)
		}
	}
}
