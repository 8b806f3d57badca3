package play

import (
	"encoding/hex"
	"strings"
	"testing"
)

// The header of a short message of two MPI_INT, byte by byte: offsets and widths are
// those of the published layout.
const shortMessage = `
	00000000 00000008
	0000000000000000 00000000c000020a 0000000000001092
	0000000000000000 0000ffffc0000214 0000000000000309
	0000000000000001 0000000000000000 0000000000000008
	00000000 0000002a 0000000000000000
	0000000000000001 0000000000000002 0000000000000000 0000000000000000
	00000001 fffffffe`

func TestPacketBytes(t *testing.T) {
	p := packet{
		typ: pkData, len: 8, src: procID{pid: 4242}, dest: procID{pid: 777},
		srqid: 1, msglen: 8, tag: 42, seq: 1, count: 2, data: []byte{0, 0, 0, 1, 255, 255, 255, 254},
	}
	copy(p.src.host[12:], []byte{192, 0, 2, 10})
	copy(p.dest.host[10:], []byte{255, 255, 192, 0, 2, 20})
	want, err := hex.DecodeString(strings.Join(strings.Fields(shortMessage), ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.bytes(); hex.EncodeToString(got) != hex.EncodeToString(want) {
		t.Errorf("%x\n%x", got, want)
	}
	back := parsePacket(want)
	if back.data = p.data; back.String() != p.String() || string(back.bytes()) != string(want) {
		t.Errorf("%v", &back)
	}
	if text := p.String(); text != "DATA 192.0.2.10/4242 -> 192.0.2.20/777 srqid=1 msglen=8 lsrank=0 tag=42 cid=0 len=8 data=00000001fffffffe" {
		t.Error(text)
	}
}

// Any header survives reading and writing.
func FuzzPacket(f *testing.F) {
	f.Add(make([]byte, headerSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize {
			return
		}
		p := parsePacket(b[:headerSize])
		if got := p.header(); string(got) != string(b[:headerSize]) {
			t.Errorf("%x\n%x", got, b[:headerSize])
		}
	})
}

func TestRecordBytes(t *testing.T) {
	for _, c := range []struct {
		r    record
		want string
		text string
	}{
		{record{cmdAuth, u32(3)}, "415554480000000400000003", "AUTH mask=0x3"},
		{record{cmdIMPI, u32(1)}, "494d50490000000400000001", "IMPI 1"},
		{coll(cNHosts, u32(1)), "434f4c4c000000080000110000000001", "COLL C_NHOSTS len=8 00000001"},
		{answer(cNProcs, 3, u32(2, 1)), "434f4c4c0000001000001200000000030000000200000001", "COLL C_NPROCS len=16 000000030000000200000001"},
		{record{cmd: cmdDone}, "444f4e4500000000", "DONE"},
		{record{cmd: cmdFini}, "46494e4900000000", "FINI"},
		{record{0x00000001, []byte{1}}, "000000010000000101", "command 0x00000001 len=1 01"},
	} {
		if got := hex.EncodeToString(c.r.bytes()); got != c.want || c.r.String() != c.text {
			t.Errorf("%v: %s, want %s (%s)", c.r, got, c.want, c.text)
		}
	}
}

// Parent and children in the barrier's tree of six masters, and linear for four.
func TestBarrierTree(t *testing.T) {
	for _, c := range []struct {
		v, m, parent int
		children     []int
	}{
		{0, 6, -1, []int{4, 2, 1}}, {1, 6, 0, []int{5, 3}}, {2, 6, 0, nil}, {3, 6, 1, nil}, {4, 6, 0, nil}, {5, 6, 1, nil},
		{0, 4, -1, []int{1, 2, 3}}, {3, 4, 0, nil}, {0, 1, -1, nil}, {0, 5, -1, []int{4, 2, 1}},
	} {
		parent, children := barrierTree(c.v, c.m, 4)
		if parent != c.parent || len(children) != len(c.children) {
			t.Fatalf("%+v: %d, %v", c, parent, children)
		}
		for i := range children {
			if children[i] != c.children[i] {
				t.Errorf("%+v: %v", c, children)
			}
		}
	}
}
