package message

import (
	"bytes"
	"errors"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
)

// The operations of FuzzEngine. The upper bits choose a link, a peer or a request.
const (
	enPacket  = iota // a packet that is well made: see sabotage.draw
	enHalf           // its first bytes: how many
	enBytes          // as many bytes as the next one says
	enSend           // mode and tag, size
	enRecv           // wildcards and tag, size
	enCancel         // a request
	enTake           // takes a message that can be probed, and receives it
	enWrite          // the link takes 8 times as many bytes as the next one says
	enDrain          // the link takes everything
	enDown           // a peer is down
	enDetach         // a link ends
	enRelease        // a request
	enCount
)

// sabotage is an engine whose peers, links and user do what the fuzzer says. Link 0 is
// shared, link 1 belongs to peer 1. Peers 2 and 3 use link 0; peer 3 gets its route late.
type sabotage struct {
	*Engine
	t    *testing.T
	b    []byte
	all  []*held
	left [2]bool // the links that are still there
	out  [2][]byte
	fed  int
}

// held is a request of the user's.
type held struct {
	r     *Request
	buf   []byte
	after []byte // buf when the request was done
	freed bool
}

const engineMax = 300 // data bytes of a packet

func newSabotage(t *testing.T, b []byte) *sabotage {
	e, err := New(Config{
		Directory: directoryOf(t, wire.Proc{PID: 1}, wire.Proc{PID: 2}, wire.Proc{PID: 3}, wire.Proc{PID: 4}),
		MaxData:   engineMax, AckMark: 2, HiWater: 5, StageLimit: 40,
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Attach(0)
	e.AttachPeer(1, 1)
	e.SetRoute(1, 1)
	e.SetRoute(2, 0)
	if err := e.BufferSpace().Attach(4096); err != nil {
		t.Fatal(err)
	}
	return &sabotage{Engine: e, t: t, b: b, left: [2]bool{true, true}}
}

// FuzzEngine: a user sends, receives, cancels and probes while peers send anything. Nothing
// panics or runs for ever; a buffer that was returned is never written again; what leaves
// is packets within the rules; memory is allocated for what has come, not for what was
// announced; and when the peers are gone every request ends.
func FuzzEngine(f *testing.F) {
	at := func(kind, who int) byte { return byte(kind + enCount*who) }
	packet := func(l int, typ wire.PacketType, size, more, tag, src, dst byte) []byte {
		return []byte{at(enPacket, l), byte(typ), size, more, tag, src, dst}
	}
	long := bytes.Join([][]byte{
		{at(enRecv, 1), 1, 200, at(enRecv, 0), 0x33, 90, at(enSend, 1), 0x10, 250, at(enSend, 2), 0x01, 20, at(enDrain, 0), at(enDrain, 1)},
		packet(1, wire.PkDataSync, 255, 30, 1, 7, 0),
		packet(1, wire.PkSyncAck, 0, 0, 0, 1, 9),
		{at(enDrain, 1)},
		packet(1, wire.PkData, 20, 255, 1, 7, 2), packet(1, wire.PkData, 100, 0, 2, 0, 0),
		packet(0, wire.PkDataSync, 10, 0, 3, 5, 0), {at(enTake, 0)}, packet(0, wire.PkCancel, 0, 0, 0, 5, 0),
		packet(1, wire.PkProtoAck, 0, 0, 0, 0, 0), {at(enWrite, 1), 5, at(enDrain, 1), at(enDetach, 1), at(enDown, 2)},
	}, nil)
	f.Add(long)
	var cancels []byte
	for i := range 4 {
		cancels = append(cancels, at(enSend, 1), byte(0x20+i), byte(60*i), at(enWrite, 1), 20, at(enCancel, i))
		cancels = append(cancels, packet(1, wire.PkCancelYes+wire.PacketType(i%2), 0, 0, 0, byte(1+i), 0)...)
		cancels = append(cancels, at(enHalf, 1), byte(wire.PkData), 200, 0, byte(i), 0, 0, 170, at(enRelease, i))
	}
	f.Add(cancels)
	raw := []byte{at(enRecv, 1), 0x30, 255}
	for _, b := range stream() {
		raw = append(raw, at(enBytes, 1), 1, b)
	}
	f.Add(raw)
	f.Add(bytes.Join([][]byte{ // Sources and Sinks, and peers that go down in the middle
		{at(enRecv, 1), 0x41, 100, at(enSend, 1), 0x50, 250, at(enSend, 2), 0x41, 20, at(enWrite, 1), 30, at(enSend, 1), 0x62, 200},
		packet(1, wire.PkDataSync, 255, 30, 1, 7, 0), packet(1, wire.PkSyncAck, 0, 0, 0, 1, 9), {at(enWrite, 1), 50},
		{at(enHalf, 1), byte(wire.PkData), 200, 0, 1, 0, 0, 170, at(enDown, 0), at(enDrain, 1), at(enRecv, 0), 0x4c, 50},
	}, nil))
	f.Add(bytes.Repeat(packet(0, wire.PkDataSync, 0, 255, 1, 1, 0), 30))
	f.Add(bytes.Join([][]byte{
		packet(0, wire.PkDataSync, 9, 254, 0x11, 1, 0), {at(enRecv, 1), 8, 40}, packet(0, wire.PkDataSync, 9, 254, 0x20, 1, 0),
		{at(enHalf, 0), byte(wire.PkData), 40, 0, 0x20, 0, 0, 150, at(enRecv, 0), 0x0c, 50, at(enDown, 1)}, packet(1, wire.PkData, 2, 0, 1, 0, 0),
	}, nil))
	f.Add(bytes.Join([][]byte{ // peer 2 goes down in the middle of what it sends, and the rest comes
		packet(0, wire.PkDataSync, 9, 200, 0x21, 1, 0),
		{at(enRecv, 0), 0x0a, 50, at(enRecv, 0), 0x08, 60, at(enHalf, 0), byte(wire.PkData), 40, 0, 0x20, 0, 0, 150, at(enDown, 1)},
		{at(enBytes, 0), 18}, []byte("QRSTUVWXYZABCDEFGH"), {at(enRecv, 0), 0x0c, 50},
	}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		s := newSabotage(t, b)
		steps := 0
		cost := allocs.Bytes(func() { steps = s.run() })
		if most := uint64(allocs.MaxError + 2*inputSize + 64*s.fed + 8<<10*steps); cost > most {
			t.Fatalf("%d bytes in %d steps took %d bytes of memory, at most %d should be", s.fed, steps, cost, most)
		}
		s.finish()
	})
}

func (s *sabotage) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	x := s.b[0]
	s.b = s.b[1:]
	return x
}

func (s *sabotage) run() (steps int) {
	for ; len(s.b) > 0 && steps < 2000; steps++ {
		x := int(s.byte())
		kind, who := x%enCount, x/enCount
		switch kind {
		case enPacket:
			s.hear(who%2, s.draw())
		case enHalf:
			p := s.draw()
			s.hear(who%2, p[:min(len(p), int(s.byte()))])
		case enBytes:
			n := min(int(s.byte()), len(s.b))
			s.hear(who%2, s.b[:n])
			s.b = s.b[n:]
		case enWrite:
			s.write(who%2, 8*int(s.byte()))
		case enDrain:
			s.write(who%2, 1<<30)
		case enDown:
			s.PeerDown(Peer(1+who%3), errCut)
		case enDetach:
			s.cut(who%2, errCut)
		default:
			s.user(kind, who)
		}
		s.observe()
	}
	return steps
}

// user does what the user of the engine does.
func (s *sabotage) user(kind, who int) {
	switch kind {
	case enSend:
		how := s.byte()
		data := bytes.Repeat([]byte{how}, 3*int(s.byte()))
		env := Envelope{Context: wire.ContextID(how >> 7), Tag: wire.Tag(how & 3)}
		h := &held{buf: data}
		if how&0x40 != 0 {
			h.r = s.SendFrom(Peer(who%4), env, Mode(how>>4&3), &strewn{tb: s.t, data: data}, int64(len(data)), 0, 0)
		} else {
			h.r = s.Send(Peer(who%4), env, Mode(how>>4&3), data, 0, 0)
		}
		s.all = append(s.all, h)
	case enRecv:
		s.recv(who, s.byte(), 3*int(s.byte()))
	case enCancel, enRelease:
		if len(s.all) == 0 {
			return
		}
		switch h := s.all[who%len(s.all)]; {
		case h.freed:
		case kind == enCancel:
			s.Cancel(h.r)
		case h.r.Done(): // buffers are watched, so only what is done
			h.freed = true
			s.Release(h.r)
		}
	case enTake:
		env := Envelope{Context: wire.ContextID(who & 1), Rank: AnySource, Tag: AnyTag}
		st, ok := s.Probe(env, NoPeer)
		m, again, took := s.Take(env, NoPeer)
		if ok != took || st != again {
			s.t.Fatalf("probed %+v %v, took %+v %v", st, ok, again, took)
		}
		if took {
			buf := make([]byte, min(st.Len, 500))
			s.all = append(s.all, &held{r: s.RecvMessage(m, buf), buf: buf})
		}
	}
}

// recv posts a receive: the tag's bits 2 and 3 mean any tag and any source, bit 6
// that it goes into a Sink.
func (s *sabotage) recv(who int, how byte, n int) {
	env, from := Envelope{Context: wire.ContextID(how >> 7), Rank: wire.CommRank(who % 4), Tag: wire.Tag(how & 3)}, Peer(who%4)
	if how&4 != 0 {
		env.Tag = AnyTag
	}
	if how&8 != 0 {
		env.Rank, from = AnySource, NoPeer
	}
	buf := make([]byte, n)
	h := &held{buf: buf}
	if how&0x40 != 0 {
		h.r = s.RecvInto(env, from, &gathered{tb: s.t, data: buf})
	} else {
		h.r = s.Recv(env, from, buf)
	}
	s.all = append(s.all, h)
}

// draw makes a packet of six bytes: type, length, how much longer the message is,
// tag, the two request ids. The upper bits of the tag choose context and source.
func (s *sabotage) draw() []byte {
	typ, n, more, tag, src, dst := s.byte(), s.byte(), s.byte(), s.byte(), s.byte(), s.byte()
	h := wire.Packet{
		Type: wire.PacketType(typ % 9), Len: uint32(n), MsgLen: uint64(n) + 2*uint64(more), Tag: wire.Tag(tag & 3),
		Context: wire.ContextID(tag >> 7), LSRank: wire.CommRank(tag >> 4 & 3),
		SrcReq: wire.RequestID(src&31) | wire.RequestID(src>>5)<<32, DestReq: wire.RequestID(dst&31) | wire.RequestID(dst>>5)<<32,
		Src: wire.Proc{PID: 1 + int64(tag>>4&3)}, Dest: wire.Proc{PID: 1},
	}
	switch more {
	case 255: // to have a long message in one packet of the full size
		h.Len = engineMax
		h.MsgLen = engineMax + uint64(n)
	case 254: // to have one that cannot be
		h.MsgLen = 1<<62 + uint64(n)
	}
	b := make([]byte, headerSize)
	wire.Published.PutHeader(b, &h)
	if h.Type.HasData() {
		b = append(b, alphabet(int(h.Len))...)
	}
	return b
}

func (s *sabotage) hear(l int, raw []byte) {
	s.fed += len(raw)
	if l == 1 && s.left[l] { // a link that is memory: whole packets are taken where they lie
		n, err := s.Arrived(LinkID(l), raw)
		if n == 0 && err == nil && len(raw)%2 == 0 {
			n, err = s.Begun(LinkID(l), raw)
		}
		if err != nil {
			s.refused(l, err)
		}
		raw = raw[n:]
	}
	for len(raw) > 0 && s.left[l] {
		n := 0
		for _, b := range s.Input(LinkID(l)) {
			if len(b) == 0 {
				s.t.Fatal("empty slice to read into")
			}
			k := copy(b, raw)
			raw = raw[k:]
			n += k
		}
		if err := s.Received(LinkID(l), n); err != nil {
			s.refused(l, err)
		}
	}
}

// refused cuts a link whose peer broke the protocol.
func (s *sabotage) refused(l int, err error) {
	var pe *ProtocolError
	if !errors.As(err, &pe) || pe.Link != LinkID(l) || pe.Field == "" || pe.Reason == "" {
		s.t.Fatalf("not a precise error: %v", err)
	}
	s.cut(l, err)
}

// write lets a link take up to n bytes.
func (s *sabotage) write(l, n int) {
	for s.left[l] && n > 0 && s.HasOutput(LinkID(l)) {
		b := bytes.Join(s.Output(LinkID(l)), nil)
		if len(b) == 0 {
			if s.HasOutput(LinkID(l)) {
				s.t.Fatal("there is output, and none")
			}
			return
		}
		k := min(n, len(b))
		s.out[l] = append(s.out[l], b[:k]...)
		s.Sent(LinkID(l), k)
		n -= k
	}
}

func (s *sabotage) cut(l int, cause error) {
	if s.left[l] {
		s.left[l] = false
		s.Detach(LinkID(l), cause)
	}
}

// observe looks at all requests, and gives a route to whoever asks for one.
func (s *sabotage) observe() {
	for p, ok := s.Unrouted(); ok; p, ok = s.Unrouted() {
		if s.left[0] {
			s.SetRoute(p, 0)
		} else {
			s.PeerDown(p, errCut)
		}
	}
	for _, h := range s.all {
		switch {
		case h.freed || !h.r.Done():
		case h.after == nil:
			h.after = bytes.Clone(h.buf)
			if st := h.r.Status(); h.r.IsRecv() && (st.Len < 0 || st.Len > int64(len(h.buf))) {
				s.t.Fatalf("%+v in a buffer of %d bytes", st, len(h.buf))
			}
		}
	}
}

// finish ends both links: then everything ends, but for receives that anybody
// may answer, which can be cancelled.
func (s *sabotage) finish() {
	for l := range s.left {
		s.write(l, 1<<30)
		s.leftWell(l)
		s.cut(l, errCut)
	}
	s.observe()
	for _, h := range s.all {
		if h.freed || h.r.Done() {
			continue
		}
		s.Cancel(h.r) // what is from anybody, or between this proc and itself
		if !h.r.Done() && h.r.peer != s.self {
			s.t.Fatalf("request %+v does not end", h.r.pending())
		}
	}
	s.observe()
	for i, h := range s.all {
		if h.after != nil && !bytes.Equal(h.after, h.buf) {
			s.t.Fatalf("the buffer of request %d was written after its end", i)
		}
	}
	_ = s.Completed()
}

// leftWell looks at what left by a link that took everything.
func (s *sabotage) leftWell(l int) {
	for b := s.out[l]; len(b) > 0; {
		if len(b) < headerSize {
			if s.left[l] {
				s.t.Fatalf("link %d: %d bytes are no packet", l, len(b))
			}
			return
		}
		var h wire.Packet
		wire.Published.Header(b, &h)
		n := headerSize
		if h.Type.HasData() {
			n += int(h.Len)
		}
		if h.Src.PID != 1 || h.Dest.PID < 2 || h.Dest.PID > 4 || !h.Type.Known() || n > headerSize+engineMax || l == 1 && h.Dest.PID != 2 {
			s.t.Fatalf("link %d: %v", l, &h)
		}
		b = b[min(n, len(b)):]
	}
}
