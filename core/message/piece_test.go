package message

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

const cfg256 = 256 << 10

// packets are the data lengths of the packets in raw.
func packets(tb testing.TB, raw []byte) (sizes []int) {
	tb.Helper()
	for len(raw) > 0 {
		var in wire.Packet
		wire.Published.Header(raw, &in)
		n := 0
		if in.Type.HasData() {
			n = int(in.Len)
		}
		sizes = append(sizes, n)
		raw = raw[headerSize+n:]
	}
	return sizes
}

// TestPieces wants a long message between procs that take fast-box messages to be a short packet
// and few long ones, and one between others to be packets of the job's length.
func TestPieces(t *testing.T) {
	cfg := roomy
	cfg.MaxData = cfg256
	const total = shortPiece + 2*longPiece + 5
	for _, agreed := range []bool{true, false} {
		p := newBoxed(t, cfg)
		p.d[0].alone = !agreed
		buf, data := make([]byte, total), alphabet(total)
		r := p.recv(1, buf)
		s := p.send(0, Standard, data)
		var sizes []int
		for !r.Done() || !s.Done() {
			raw := p.wireBytes(0)
			if len(raw) == 0 {
				t.Fatalf("agreed %v: stuck behind packets of %d bytes", agreed, sizes)
			}
			sizes = append(sizes, packets(t, raw)...)
			put(t, p.e[1], 0, raw)
			put(t, p.e[0], 0, p.wireBytes(1))
		}
		want := []int{shortPiece, longPiece, longPiece, 5}
		if !agreed {
			want = append(slices.Repeat([]int{cfg256}, total/cfg256), total%cfg256)
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("agreed %v: packets of %d bytes, want %d", agreed, sizes, want)
		}
		if !bytes.Equal(buf, data) || r.Status().Len != total {
			t.Errorf("agreed %v: received %+v", agreed, r.Status())
		}
		if c := p.e[1].Counters(); agreed && c.ShortPackets > 1 {
			t.Errorf("%+v", c)
		}
	}
}

// TestTooLongPiece wants a packet that is longer than any piece to be a fault, of those who take
// fast-box messages and of others.
func TestTooLongPiece(t *testing.T) {
	for size, want := range map[uint32]bool{longPiece: true, longPiece + 1: false} {
		for _, takes := range []bool{true, false} {
			cfg := roomy
			cfg.MaxData = cfg256
			p := newBoxed(t, cfg)
			if !takes {
				p = &boxed{pair: newPair(t, cfg)}
			}
			h := wire.Packet{Type: wire.PkData, Len: size, MsgLen: 3 * longPiece}
			h.Src, h.Dest = p.e[0].own.self, p.e[1].own.self
			b := make([]byte, headerSize)
			wire.Published.PutHeader(b, &h)
			err := p.e[1].Received(0, copy(p.e[1].Input(0)[0], b))
			var fault *ProtocolError
			if !errors.As(err, &fault) {
				t.Fatalf("%d bytes: %v", size, err) // nobody expects such a message
			}
			if got := fault.Field == "pk_drqid"; got != (want && takes) {
				t.Errorf("%d bytes, fast-box messages %v: %v", size, takes, err)
			}
		}
	}
}
