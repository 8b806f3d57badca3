package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// loadGolden reads testdata/golden.txt: names at the margin, hex below them.
func loadGolden(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string][]byte)
	name := ""
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || line[0] == '#':
		case line[0] != ' ':
			name = line
		default:
			b, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			m[name] = append(m[name], b...)
		}
	}
	return m
}

var (
	goldenHost0 = HostIDFrom(netip.MustParseAddr("192.0.2.10"), IPv4Compatible)
	goldenHost1 = HostIDFrom(netip.MustParseAddr("192.0.2.20"), IPv4Mapped)
	goldenRank0 = Proc{goldenHost0, 4242}
	goldenRank2 = Proc{goldenHost1, 777}
)

func be32(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

func be64(v ...uint64) (b []byte) {
	for _, x := range v {
		b = binary.BigEndian.AppendUint64(b, x)
	}
	return b
}

// goldenStartup makes the startup messages with the encoders of this package.
func goldenStartup() map[string][]byte {
	const unchosen = 1<<32 - 1
	h0, h1 := goldenHost0[:], goldenHost1[:]
	answer := func(l Label, m ClientMask, data []byte) []byte {
		return append(AppendAnswer(nil, l, m, len(data)), data...)
	}
	cat := func(b ...[]byte) []byte { return bytes.Join(b, nil) }
	v := AppendVersion(nil, Version00)
	return map[string][]byte{
		"auth-none":          AppendAuth(nil, AuthNone),
		"choose-none":        AppendAuthChoice(nil, MechNone),
		"auth-both":          AppendAuth(nil, AuthNone|AuthKey),
		"choose-key":         AppendAuthChoice(nil, MechKey),
		"key-5678":           AppendKey(nil, 5678),
		"impi-1":             AppendIMPI(nil, 1),
		"impi-answer-2":      AppendIMPI(nil, 2),
		"version":            AppendColl(nil, LabelVersion, v),
		"version-answer":     answer(LabelVersion, 3, cat(v, v)),
		"nhosts":             AppendColl(nil, LabelNHosts, be32(1)),
		"nhosts-answer":      answer(LabelNHosts, 3, be32(1, 1)),
		"nprocs-answer":      answer(LabelNProcs, 3, be32(2, 1)),
		"datalen-answer":     answer(LabelDataLen, 3, be32(65536, 4000)),
		"tagub-answer":       answer(LabelTagUB, 3, be32(1<<31-1, 32767)),
		"tagub-answer-hole":  answer(LabelTagUB, 1, be32(1<<31-1)),
		"xsize":              AppendColl(nil, LabelCollXSize, be32(unchosen)),
		"xsize-answer":       answer(LabelCollXSize, 3, be32(unchosen, 1024)),
		"maxlinear-answer":   answer(LabelMaxLinear, 3, be32(unchosen, unchosen)),
		"host-ipv6-answer":   answer(LabelHostIPv6, 3, cat(h0, h1)),
		"host-port-answer":   answer(LabelHostPort, 3, be32(5001, 6001)),
		"host-nprocs-answer": answer(LabelHostNProcs, 3, be32(2, 1)),
		"ackmark-answer":     answer(LabelAckMark, 3, be32(10, 8)),
		"hiwater-answer":     answer(LabelHiWater, 3, be32(20, 32)),
		"proc-ipv6":          AppendColl(nil, LabelProcIPv6, cat(h0, h0)),
		"proc-ipv6-answer":   answer(LabelProcIPv6, 3, cat(h0, h0, h1)),
		"proc-pid-answer":    answer(LabelProcPID, 3, be64(4242, 4243, 777)),
		"done":               AppendCommand(nil, CmdDone, 0),
		"dance":              be32(1),
		"server-fini":        AppendCommand(nil, CmdFini, 0),
	}
}

type goldenPacket struct {
	header Packet
	data   []byte
}

func goldenPackets() map[string]goldenPacket {
	long := Packet{
		Type: PkDataSync, Len: 4000, Src: goldenRank0, Dest: goldenRank2,
		SrcReq: 9, MsgLen: 10000, Tag: 7, Seq: 4, Count: 2500,
	}
	next := long
	next.Type, next.DestReq = PkData, 0x55
	return map[string]goldenPacket{
		"short": {Packet{
			Type: PkData, Len: 8, Src: goldenRank0, Dest: goldenRank2,
			SrcReq: 1, MsgLen: 8, Tag: 42, Seq: 1, Count: 2,
		}, be32(1, 1<<32-2)},
		"barrier": {Packet{
			Type: PkData, Src: goldenRank2, Dest: goldenRank0,
			SrcReq: 5, LSRank: 2, Tag: 110, Context: 1, Seq: 3,
		}, nil},
		"long-first":  {long, nil},
		"long-next":   {next, nil},
		"syncack":     {Packet{Type: PkSyncAck, Src: goldenRank2, Dest: goldenRank0, SrcReq: 9, DestReq: 0x55}, nil},
		"protoack":    {Packet{Type: PkProtoAck, Src: goldenRank2, Dest: goldenRank0}, nil},
		"packet-fini": {Packet{Type: PkFini}, nil},
	}
}

func TestGoldenStartup(t *testing.T) {
	golden := loadGolden(t)
	for name, b := range goldenStartup() {
		if !bytes.Equal(b, golden[name]) {
			t.Errorf("%s:\nhave %x\nwant %x", name, b, golden[name])
		}
	}
	if have, want := len(goldenStartup())+len(goldenPackets()), len(golden); have != want {
		t.Errorf("%d examples are made, the file has %d", have, want)
	}
}

func TestGoldenPackets(t *testing.T) {
	golden := loadGolden(t)
	for name, want := range goldenPackets() {
		b := make([]byte, HeaderSize)
		Published.PutHeader(b, &want.header)
		if b = append(b, want.data...); !bytes.Equal(b, golden[name]) {
			t.Errorf("%s:\nhave %x\nwant %x", name, b, golden[name])
		}
		var p Packet
		Published.Header(golden[name], &p)
		if p != want.header {
			t.Errorf("%s:\nread %+v\nwant %+v", name, p, want.header)
		}
	}
}
