package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

// samplePacket has another value in each byte of each field.
func samplePacket() Packet {
	var b [HeaderSize]byte
	for i := range b {
		b[i] = byte(i + 1)
	}
	var p Packet
	Published.Header(b[:], &p)
	return p
}

func TestHeaderLayout(t *testing.T) {
	p := samplePacket()
	for name, c := range map[string]struct{ have, want uint64 }{
		"pk_type": {uint64(p.Type), 0x01020304}, "pk_len": {uint64(p.Len), 0x05060708},
		"pk_src.pid": {uint64(p.Src.PID), 0x191a1b1c1d1e1f20}, "pk_dest.pid": {uint64(p.Dest.PID), 0x3132333435363738},
		"pk_srqid": {uint64(p.SrcReq), 0x393a3b3c3d3e3f40}, "pk_drqid": {uint64(p.DestReq), 0x4142434445464748},
		"pk_msglen": {p.MsgLen, 0x494a4b4c4d4e4f50}, "pk_lsrank": {uint64(p.LSRank), 0x51525354},
		"pk_tag": {uint64(p.Tag), 0x55565758}, "pk_cid": {uint64(p.Context), 0x595a5b5c5d5e5f60},
		"pk_seqnum": {p.Seq, 0x6162636465666768}, "pk_count": {uint64(p.Count), 0x696a6b6c6d6e6f70},
		"pk_dtype": {p.Datatype, 0x7172737475767778}, "pk_reserved": {p.Reserved, 0x797a7b7c7d7e7f80},
		"pk_src.host": {uint64(p.Src.Host[0]), 9}, "pk_dest.host": {uint64(p.Dest.Host[15]), 48},
	} {
		if c.have != c.want {
			t.Errorf("%s is %x, want %x", name, c.have, c.want)
		}
	}
}

// What is read is what is written, in every byte, whatever was in memory before.
func TestHeaderIsWrittenWhole(t *testing.T) {
	p := samplePacket()
	b := bytes.Repeat([]byte{0xee}, HeaderSize)
	Published.PutHeader(b, &p)
	for i, have := range b {
		if have != byte(i+1) {
			t.Errorf("byte %d is %#x", i, have)
		}
	}
	p.Tag, p.LSRank = 7, 0
	Draft.PutHeader(b, &p)
	q := Packet{LSRank: 99}
	if Draft.Header(b, &q); p != q {
		t.Errorf("%+v became %+v", p, q)
	}
}

func TestHeaderNegativeFields(t *testing.T) {
	p := Packet{LSRank: -1, Tag: -1, Count: -1, Src: Proc{PID: -1}}
	var b [HeaderSize]byte
	Published.PutHeader(b[:], &p)
	var q Packet
	Published.Header(b[:], &q)
	if p != q {
		t.Errorf("%+v became %+v", p, q)
	}
}

// TestDraftTag: the draft's tag is one Int8 where the published header has two
// Int4, so user tags are in the same four bytes and pk_lsrank does not travel.
func TestDraftTag(t *testing.T) {
	var b [HeaderSize]byte
	for _, tag := range []Tag{0, 7, math.MaxInt32, -3} {
		Draft.PutHeader(b[:], &Packet{LSRank: 5, Tag: tag})
		if have := int64(binary.BigEndian.Uint64(b[80:])); have != int64(tag) {
			t.Errorf("tag %d travels as %d", tag, have)
		}
		var p Packet
		Draft.Header(b[:], &p)
		if p.Tag != tag || p.LSRank != 0 {
			t.Errorf("tag %d came back as %d, lsrank %d", tag, p.Tag, p.LSRank)
		}
		if tag < 0 {
			continue
		}
		if Published.Header(b[:], &p); p.Tag != tag || p.LSRank != 0 {
			t.Errorf("draft tag %d read as published: %d, lsrank %d", tag, p.Tag, p.LSRank)
		}
	}
}

func TestDraftTagOutOfRange(t *testing.T) {
	var b [HeaderSize]byte
	var p Packet
	for _, tag := range []uint64{1 << 32, 1<<32 + 7, 1 << 31, 1<<63 + 7} {
		binary.BigEndian.PutUint64(b[80:], tag)
		Draft.Header(b[:], &p)
		if p.Tag != TagOutOfRange {
			t.Errorf("tag %x became %d", tag, p.Tag)
		}
	}
}

func TestHeaderAllocatesNothing(t *testing.T) {
	p := samplePacket()
	p.Type, p.Len = PkData, 4
	b := make([]byte, HeaderSize)
	for _, d := range []Dialect{Published, Draft} {
		if n := testing.AllocsPerRun(100, func() {
			d.PutHeader(b, &p)
			d.Header(b, &p)
		}); n != 0 {
			t.Errorf("dialect %d: %v allocations", d, n)
		}
	}
}

func TestPacketTypeRules(t *testing.T) {
	for typ, want := range map[PacketType]struct {
		name          string
		data, counted bool
	}{
		PkData: {"DATA", true, true}, PkDataSync: {"DATASYNC", true, true}, PkProtoAck: {"PROTOACK", false, false},
		PkSyncAck: {"SYNCACK", false, true}, PkCancel: {"CANCEL", false, true}, PkCancelYes: {"CANCELYES", false, true},
		PkCancelNo: {"CANCELNO", false, true}, PkFini: {"FINI", false, false},
	} {
		if typ.String() != want.name || typ.HasData() != want.data || typ.Counted() != want.counted || !typ.Known() {
			t.Errorf("%d: %v data=%v counted=%v", typ, typ, typ.HasData(), typ.Counted())
		}
	}
	if PacketType(8).Known() || PacketType(8).String() != "TYPE(8)" {
		t.Error("type 8 is not known")
	}
}

func TestPacketString(t *testing.T) {
	for _, c := range []struct {
		p    Packet
		want string
	}{
		{goldenPackets()["short"].header, "DATA 192.0.2.10/4242->192.0.2.20/777 srqid=1 msglen=8 len=8 lsrank=0 tag=42 cid=0"},
		{goldenPackets()["long-next"].header, "DATA 192.0.2.10/4242->192.0.2.20/777 srqid=9 drqid=85 msglen=10000 len=4000 lsrank=0 tag=7 cid=0"},
		{goldenPackets()["syncack"].header, "SYNCACK 192.0.2.20/777->192.0.2.10/4242 srqid=9 drqid=85"},
		{Packet{Type: PkProtoAck, Len: 128, SrcReq: 3, Src: goldenRank2, Dest: goldenRank0}, "PROTOACK 192.0.2.20/777->192.0.2.10/4242"},
		{Packet{Type: PkCancel, SrcReq: 3, Src: goldenRank0, Dest: goldenRank2}, "CANCEL 192.0.2.10/4242->192.0.2.20/777 srqid=3"},
		{Packet{Type: PkFini, Len: 128}, "FINI"},
	} {
		if have := c.p.String(); have != c.want {
			t.Errorf("have %s\nwant %s", have, c.want)
		}
	}
	unknown := Packet{Type: 99}
	if !strings.HasPrefix(unknown.String(), "TYPE(99) ") {
		t.Errorf("%v", &unknown)
	}
}

func FuzzHeader(f *testing.F) {
	for _, b := range loadGolden(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		if len(b) < HeaderSize {
			return
		}
		b = b[:HeaderSize]
		for _, d := range []Dialect{Published, Draft} {
			var p, q Packet
			d.Header(b, &p)
			again := make([]byte, HeaderSize)
			d.PutHeader(again, &p)
			d.Header(again, &q)
			if p != q {
				t.Fatalf("dialect %d: %+v became %+v", d, p, q)
			}
			if d == Published && !bytes.Equal(b, again) {
				t.Fatalf("%x became %x", b, again)
			}
			_ = p.String()
		}
	})
}
