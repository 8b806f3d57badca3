package message

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
)

// victim is an engine with everything under way: receives of all kinds are posted, sends
// wait for answers.
func victim(tb testing.TB) *Engine {
	e, err := New(Config{
		Directory: directoryOf(tb, wire.Proc{PID: 1}, wire.Proc{PID: 2}, wire.Proc{PID: 3}),
		MaxData:   64, AckMark: 2, HiWater: 8,
	})
	if err != nil {
		tb.Fatal(err)
	}
	e.Attach(0)
	e.AttachPeer(1, 1)
	e.SetRoute(1, 1)
	e.SetRoute(2, 0)
	for tag := range 4 {
		e.Recv(Envelope{Rank: 1, Tag: wire.Tag(tag)}, 1, make([]byte, 100))
		e.Recv(Envelope{Rank: AnySource, Tag: wire.Tag(tag)}, NoPeer, make([]byte, 50))
	}
	e.Send(1, Envelope{}, Synchronous, make([]byte, 10), 0, 0)
	e.Send(1, Envelope{}, Standard, make([]byte, 200), 0, 0)
	e.Cancel(e.Send(1, Envelope{}, Standard, make([]byte, 200), 0, 0))
	e.Send(2, Envelope{}, Standard, make([]byte, 200), 0, 0)
	return e
}

// stream is what a peer might send to the victim: every packet type, each in
// its right place.
func stream() []byte {
	var raw []byte
	add := func(h wire.Packet) {
		h.Src, h.Dest = wire.Proc{PID: 2}, wire.Proc{PID: 1}
		h.LSRank = 1
		b := make([]byte, headerSize)
		wire.Published.PutHeader(b, &h)
		raw = append(raw, b...)
		if h.Type.HasData() {
			raw = append(raw, alphabet(int(h.Len))...)
		}
	}
	add(wire.Packet{Type: wire.PkData, Len: 10, MsgLen: 10, Tag: 1})
	add(wire.Packet{Type: wire.PkSyncAck, SrcReq: 1})
	add(wire.Packet{Type: wire.PkDataSync, Len: 64, MsgLen: 150, Tag: 2, SrcReq: 7})
	add(wire.Packet{Type: wire.PkProtoAck})
	add(wire.Packet{Type: wire.PkData, Len: 64, MsgLen: 150, Tag: 2, SrcReq: 7, DestReq: 1<<32 + 1})
	add(wire.Packet{Type: wire.PkCancelYes, SrcReq: 3})
	add(wire.Packet{Type: wire.PkDataSync, Len: 5, MsgLen: 5, Tag: 9, SrcReq: 8})
	add(wire.Packet{Type: wire.PkCancel, SrcReq: 8})
	add(wire.Packet{Type: wire.PkData, Len: 22, MsgLen: 150, Tag: 2, SrcReq: 7})
	add(wire.Packet{Type: wire.PkSyncAck, SrcReq: 2, DestReq: 5})
	add(wire.Packet{Type: wire.PkCancelNo, SrcReq: 2})
	return raw
}

// hit feeds raw to the victim and writes what it has to say, as a driver would.
// It gives the error that ended the link. Nothing may panic or go on forever.
func hit(tb testing.TB, e *Engine, l LinkID, raw []byte, chunk int) error {
	var end error
	for len(raw) > 0 && end == nil {
		n := 0
		for _, b := range e.Input(l) {
			if len(b) == 0 {
				tb.Fatal("empty slice to read into")
			}
			k := copy(b, raw[:min(len(raw), chunk-n)])
			raw = raw[k:]
			n += k
		}
		end = e.Received(l, n)
		for _, o := range []LinkID{0, 1} {
			for i := 0; e.HasOutput(o); i++ {
				e.Sent(o, total(e.Output(o)))
				if i > 1000 {
					tb.Fatal("output does not end")
				}
			}
		}
	}
	if end != nil {
		var pe *ProtocolError
		if !errors.As(end, &pe) || pe.Link != l || pe.Field == "" || pe.Reason == "" {
			tb.Fatalf("not a precise error: %v", end)
		}
	}
	e.Detach(l, errors.Join(end, errCut))
	checkEnded(tb, e)
	return end
}

// checkEnded makes sure that all requests to or from peer 1 alone have failed or
// succeeded once its link is gone.
func checkEnded(tb testing.TB, e *Engine) {
	if e.Unreachable(1) == nil {
		return
	}
	for p := range e.Pending() {
		if p.Peer == 1 && p.What != "message" {
			tb.Fatalf("left behind: %v", p)
		}
	}
}

func TestGoodStream(t *testing.T) {
	e := victim(t)
	if err := hit(t, e, 1, stream(), 1<<20); err != nil {
		t.Fatal(err)
	}
	if c := e.Counters(); c != (Counts{StrayCancelNos: 1, UnknownDestReq: 1}) {
		t.Errorf("the stream does not fit the victim: %+v", c)
	}
}

func TestEveryPrefix(t *testing.T) {
	raw := stream()
	for n := range raw {
		if err := hit(t, victim(t), 1, raw[:n], 1<<20); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestEveryTruncation(t *testing.T) {
	raw := stream()
	for n := range raw {
		_ = hit(t, victim(t), 1, raw[n:], 1<<20)
	}
}

func TestEveryBitFlip(t *testing.T) {
	raw := stream()
	faults := 0
	for bit := range 8 * len(raw) {
		raw[bit/8] ^= 1 << (bit % 8)
		if hit(t, victim(t), LinkID(bit/8+bit)%2, raw, 50) != nil {
			faults++
		}
		raw[bit/8] ^= 1 << (bit % 8)
	}
	if faults == 0 {
		t.Error("no flip was a fault")
	}
}

// A length of 2^31-1 is refused before anything is allocated for it, and an
// announced message length allocates nothing at all.
func TestLengthsDoNotAllocate(t *testing.T) {
	e := victim(t)
	h := wire.Packet{
		Type: wire.PkDataSync, Len: 1, MsgLen: 1<<63 - 1, Tag: 77, LSRank: 1,
		Src: wire.Proc{PID: 2}, Dest: wire.Proc{PID: 1},
	}
	raw := make([]byte, headerSize+1)
	wire.Published.PutHeader(raw, &h)
	put(t, e, 1, raw)
	if st, ok := e.Probe(Envelope{Rank: 1, Tag: 77}, 1); !ok || st.Len != 1<<63-1 {
		t.Fatalf("probed %+v", st)
	}
	r := e.Recv(Envelope{Rank: 1, Tag: 77}, 1, make([]byte, 10))
	if r.Done() {
		t.Fatal("done")
	}
	e.Detach(1, errCut)
	if !r.Done() || !errors.Is(r.Err(), ErrPeerDown) {
		t.Fatal(r.Err())
	}
}

// TestLyingLengths: a first packet takes memory for the data that it has and no more,
// whatever length it announces for the message, and whether or not a receive waits for it.
func TestLyingLengths(t *testing.T) {
	const maxData = 1 << 20
	for _, n := range []uint64{maxData, 1 << 31, 1<<63 - 1, 1<<64 - 1} {
		for _, size := range []uint32{10, maxData, 1 << 31} {
			procs := directoryOf(t, wire.Proc{PID: 1}, wire.Proc{PID: 2})
			e, err := New(Config{Directory: procs, MaxData: maxData, AckMark: 1, HiWater: 4})
			if err != nil {
				t.Fatal(err)
			}
			e.Attach(0)
			h := wire.Packet{Type: wire.PkDataSync, Len: size, MsgLen: n, LSRank: 1, Src: wire.Proc{PID: 2}, Dest: wire.Proc{PID: 1}}
			raw := make([]byte, headerSize)
			wire.Published.PutHeader(raw, &h)
			cost := allocs.BytesExact(func() {
				_ = e.Received(0, copy(e.Input(0)[0], raw))
				e.Recv(Envelope{Rank: AnySource, Tag: AnyTag}, NoPeer, nil)
			})
			most := uint64(inputSize + 32<<10)
			if size <= maxData {
				most += uint64(size)
			}
			if cost > most {
				t.Errorf("%d bytes of %d cost %d bytes, more than %d", size, n, cost, most)
			}
		}
	}
}

func FuzzReceived(f *testing.F) {
	f.Add(stream(), uint16(1000), false)
	f.Add(stream(), uint16(1), true)
	f.Add(stream()[3:], uint16(128), true)
	f.Add(make([]byte, 300), uint16(7), false)
	f.Fuzz(func(t *testing.T, raw []byte, chunk uint16, shared bool) {
		defer watchdog.Start()()
		l := LinkID(1)
		if shared {
			l = 0
		}
		_ = hit(t, victim(t), l, raw, max(1, int(chunk)))
	})
}
