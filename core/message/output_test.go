package message

import (
	"bytes"
	"errors"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

var roomy = Config{MaxData: 65536, AckMark: 64, HiWater: 256}

// headers reads the packets of a batch.
func headers(batch [][]byte) (hs []wire.Packet) {
	raw := bytes.Join(batch, nil)
	for len(raw) >= headerSize {
		var h wire.Packet
		wire.Published.Header(raw, &h)
		hs = append(hs, h)
		n := headerSize
		if h.Type.HasData() {
			n += int(h.Len)
		}
		raw = raw[min(n, len(raw)):]
	}
	return hs
}

func TestSmallMessagesLeaveInOnePiece(t *testing.T) {
	p := newPair(t, roomy)
	for round := range 2 {
		for range 100 {
			if r := p.send(0, Standard, make([]byte, 100)); !r.Done() {
				t.Fatal("a small send is not done at once")
			}
		}
		out := p.e[0].Output(0)
		if total(out) != 100*(headerSize+100) || round > 0 && len(out) != 1 {
			t.Errorf("round %d: %d slices, %d bytes", round, len(out), total(out))
		}
		p.settle()
	}
}

// Staging memory that grows while bytes are under way loses none of them, and its size
// follows the traffic.
func TestStageGrows(t *testing.T) {
	p := newPair(t, Config{MaxData: 65536, AckMark: 1000, HiWater: 10000})
	e := p.e[0]
	var sent, came []byte
	take := func(n int) {
		out := bytes.Join(e.Output(0), nil)
		n = min(n, len(out))
		came = append(came, out[:n]...)
		e.Sent(0, n)
	}
	send := func(i int) {
		data := alphabet(1 + i%300)
		sent = append(sent, data...)
		if r := p.send(0, Standard, data); !r.Done() {
			t.Fatal("a small send is not done at once")
		}
	}
	for i := range 10 {
		send(i)
		take(1 << 20)
	}
	if n := len(e.link(0).stage.buf); n != firstStage {
		t.Errorf("%d bytes for a message at a time", n)
	}
	for i := 10; len(e.link(0).stage.buf) < stageSize; i++ {
		send(i)
		take(i % 130) // less than comes, and in the middle of packets
	}
	for e.HasOutput(0) {
		take(777)
	}
	var data []byte
	for len(came) > 0 {
		var h wire.Packet
		wire.Published.Header(came, &h)
		came = came[headerSize:]
		data, came = append(data, came[:h.Len]...), came[h.Len:]
	}
	if !bytes.Equal(data, sent) {
		t.Errorf("%d bytes have left, %d were sent, or they differ", len(data), len(sent))
	}
}

func TestLargeMessageLeavesFromTheUsersBuffer(t *testing.T) {
	p := newPair(t, roomy)
	data := make([]byte, 30000)
	r := p.send(0, Standard, data)
	out := p.e[0].Output(0)
	if len(out) != 2 || len(out[0]) != headerSize || !same(out[1], data) || len(out[1]) != len(data) {
		t.Fatalf("%d slices", len(out))
	}
	p.e[0].Sent(0, headerSize+len(data)-1)
	if r.Done() {
		t.Fatal("done, but the last byte is not sent")
	}
	if out := p.e[0].Output(0); total(out) != 1 || !same(out[0], data[len(data)-1:]) {
		t.Fatalf("%d bytes left", total(out))
	}
	p.e[0].Sent(0, 1)
	if !r.Done() || p.e[0].HasOutput(0) {
		t.Fatal("not done after the last byte")
	}
}

// Small and large messages keep their order, with staging memory in use before and after a
// large one.
func TestStagedAndReferencedKeepTheirOrder(t *testing.T) {
	p := newPair(t, roomy)
	for i := range 10 {
		p.e[0].Send(1, Envelope{Tag: wire.Tag(i)}, Standard, make([]byte, []int{10, 20000, 30}[i%3]), 0, 0)
	}
	hs := headers(p.e[0].Output(0))
	if len(hs) != 10 {
		t.Fatalf("%d packets", len(hs))
	}
	for i, h := range hs {
		if h.Tag != wire.Tag(i) || h.Seq != uint64(i+1) {
			t.Errorf("packet %d has tag %d, seqnum %d", i, h.Tag, h.Seq)
		}
	}
}

// The bytes committed to a link are limited, so that a PROTOACK that becomes due does not
// wait behind megabytes.
func TestCommitIsLimited(t *testing.T) {
	p := newPair(t, Config{MaxData: 65536, AckMark: 1, HiWater: 256})
	data := make([]byte, 65536)
	for range 100 {
		p.send(0, Standard, data)
	}
	if n := total(p.e[0].Output(0)); n > commitLimit+len(data)+headerSize {
		t.Fatalf("%d bytes are committed", n)
	}
	committed := len(headers(p.e[0].Output(0)))
	p.send(1, Standard, nil)
	p.move(1)
	hs := headers(p.e[0].Output(0))
	if len(hs) != committed+1 || hs[committed].Type != wire.PkProtoAck {
		t.Fatalf("PROTOACK is not the next packet after the %d that are committed", committed)
	}
}

// three is an engine with a shared link to two peers.
func three(t *testing.T, cfg Config) *Engine {
	t.Helper()
	cfg.Directory = directoryOf(t, wire.Proc{PID: 1}, wire.Proc{PID: 2}, wire.Proc{PID: 3})
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.Attach(0)
	e.SetRoute(1, 0)
	e.SetRoute(2, 0)
	return e
}

func TestPeersOnALinkTakeTurns(t *testing.T) {
	e := three(t, Config{MaxData: 100000, AckMark: 10, HiWater: 100})
	data := make([]byte, 100000)
	for range 20 { // more than is committed at once
		e.Send(1, Envelope{}, Standard, data, 0, 0)
	}
	for range 20 {
		e.Send(2, Envelope{}, Standard, data, 0, 0)
	}
	count := map[int64]int{}
	for range 10 {
		for _, h := range headers(e.Output(0)) {
			count[h.Dest.PID]++
		}
		e.Sent(0, total(e.Output(0)))
	}
	if d := count[2] - count[3]; d < -4 || d > 4 {
		t.Errorf("packets by peer: %v", count)
	}
}

// A send whose only packet is committed, and of which the link took nothing or a
// part, ends with its link.
func TestDetachEndsWhatIsCommitted(t *testing.T) {
	for _, taken := range []int{0, 500} {
		p := newPair(t, roomy)
		sends := []*Request{p.send(0, Standard, make([]byte, 20000)), p.send(0, Standard, make([]byte, 20000))}
		p.e[0].Output(0)
		p.e[0].Sent(0, taken)
		p.e[0].Detach(0, errCut)
		for i, r := range sends {
			if !r.Done() || !errors.Is(r.Err(), ErrPeerDown) || !errors.Is(r.Err(), errCut) {
				t.Errorf("%d bytes taken: send %d: done %v, %v", taken, i, r.Done(), r.Err())
			}
		}
	}
}

// A packet that is half sent when its peer goes down still leaves completely, but not out
// of memory that is the user's again.
func TestPeerDownInTheMiddleOfAPacket(t *testing.T) {
	e := three(t, roomy)
	data := bytes.Repeat([]byte{1}, 20000)
	r := e.Send(1, Envelope{}, Standard, data, 0, 0)
	e.Send(2, Envelope{Tag: 5}, Standard, []byte{9}, 0, 0)
	e.Output(0)
	e.Sent(0, headerSize+100)
	e.PeerDown(1, errCut)
	if !r.Done() || r.Err() == nil {
		t.Fatal("the send has not failed")
	}
	clear(data)
	out := bytes.Join(e.Output(0), nil)
	if want := bytes.Repeat([]byte{1}, 19900); !bytes.HasPrefix(out, want) {
		t.Fatal("the rest of the packet is not what it was")
	}
	if hs := headers([][]byte{out[19900:]}); len(hs) != 1 || hs[0].Tag != 5 {
		t.Fatalf("what follows: %+v", hs)
	}
	e.Sent(0, len(out))
	if !e.Idle() {
		t.Error("something is left")
	}
}

// A buffered send that is large is committed from our copy, not from the user's
// memory, which is free again.
func TestBufferedSendKeepsItsData(t *testing.T) {
	p := newPair(t, roomy)
	if err := p.e[0].BufferSpace().Attach(100000); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte{7}, 20000)
	if r := p.send(0, Buffered, data); !r.Done() || r.Err() != nil {
		t.Fatal(r.Err())
	}
	clear(data)
	buf := make([]byte, len(data))
	r := p.recv(1, buf)
	p.settle()
	if !r.Done() || !bytes.Equal(buf, bytes.Repeat([]byte{7}, 20000)) {
		t.Error("the data has changed")
	}
	if size, done := p.e[0].BufferSpace().Detach(); !done || size != 100000 {
		t.Error(size, done)
	}
}

// A SYNCACK cannot end a send whose bytes are still to be read.
func TestSyncAckBeforeTheData(t *testing.T) {
	p := newPair(t, roomy)
	r := p.send(0, Synchronous, make([]byte, 20000))
	h := wire.Packet{Type: wire.PkSyncAck, Src: p.e[1].self.proc, Dest: p.e[0].self.proc, SrcReq: r.id}
	raw := make([]byte, headerSize)
	wire.Published.PutHeader(raw, &h)
	copy(p.e[0].Input(0)[0], raw)
	if err := p.e[0].Received(0, headerSize); err != nil {
		t.Fatal(err)
	}
	if r.Done() {
		t.Fatal("done while the link still reads the buffer")
	}
	p.e[0].Sent(0, total(p.e[0].Output(0)))
	if !r.Done() {
		t.Fatal("not done")
	}
}

// A CANCELYES cannot end a send whose bytes are still to be read, either. It is no fault:
// the peer may know before us that they have been.
func TestCancelYesBeforeTheData(t *testing.T) {
	p := newPair(t, roomy)
	r := p.send(0, Synchronous, make([]byte, 20000))
	p.e[0].Cancel(r)
	raw := make([]byte, headerSize)
	wire.Published.PutHeader(raw, &wire.Packet{
		Type: wire.PkCancelYes, Src: p.e[1].self.proc, Dest: p.e[0].self.proc, SrcReq: r.id,
	})
	copy(p.e[0].Input(0)[0], raw)
	if err := p.e[0].Received(0, headerSize); err != nil {
		t.Fatal(err)
	}
	if r.Done() {
		t.Fatal("done while the link still reads the buffer")
	}
	p.e[0].Sent(0, total(p.e[0].Output(0)))
	if !r.Done() || !r.Status().Cancelled || r.Err() != nil {
		t.Fatalf("%v, %+v", r.Done(), r.Status())
	}
	copy(p.e[0].Input(0)[0], raw)
	if err := p.e[0].Received(0, headerSize); !errors.Is(err, ErrProtocol) {
		t.Fatalf("a second one: %v", err)
	}
}

// A PROTOACK that is due leaves before a send that is started now.
func TestProtoAckGoesFirst(t *testing.T) {
	p := newPair(t, Config{MaxData: 8, AckMark: 1, HiWater: 8})
	p.send(0, Standard, nil)
	p.move(0)
	p.send(1, Standard, nil)
	if hs := headers(p.e[1].Output(0)); len(hs) != 2 || hs[0].Type != wire.PkProtoAck || hs[1].Type != wire.PkData {
		t.Fatalf("%+v", hs)
	}
}

func TestSentMoreThanThereIs(t *testing.T) {
	p := newPair(t, roomy)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	p.e[0].Sent(0, 1)
}
