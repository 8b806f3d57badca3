package trace_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/transports/support/trace"
)

// tshark reads a capture file with our dissector and gives what it prints.
func tshark(t *testing.T, file []byte, args ...string) []string {
	t.Helper()
	program := skips.Program(t, "tshark")
	name := filepath.Join(t.TempDir(), "capture.pcapng")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	c := exec.Command(program, append([]string{"-n", "-X", "lua_script:wireshark/impi.lua", "-r", name}, args...)...)
	c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "LC_ALL=C.UTF-8") // no settings of a user
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil || strings.Contains(stderr.String(), ".lua") || strings.Contains(stdout.String(), "Lua Error") {
		t.Fatalf("tshark: %v\n%s%s", err, &stderr, &stdout)
	}
	return strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
}

// columns make tshark print the packet list.
var columns = []string{"-o", `gui.column.format:"S","%s","D","%d","P","%p","I","%i"`}

// list returns the packet list, with single spaces.
func list(t *testing.T, file []byte, args ...string) []string {
	t.Helper()
	lines := tshark(t, file, append(args, columns...)...)
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return lines
}

// captured is what a capture makes of the bytes that one side sends.
func captured(t *testing.T, stream []byte, opts ...trace.Option) []byte {
	t.Helper()
	var file bytes.Buffer
	c := trace.NewCapture(&file, "test")
	through(t, stream, func() int { return 1 << 20 }, func(a, b link.Link) (link.Link, link.Link) {
		return c.Link(a, "a", opts...), b
	})
	return file.Bytes()
}

func TestDissectorShowsConversation(t *testing.T) {
	stream, _ := conversation()
	file := captured(t, append([]byte{0, 0, 0, 5}, stream...), trace.Ranks(ranks), trace.Between(0, 3), trace.Greeting(4, 0))
	expect(t, "packet list", list(t, file), []string{
		"rank 0 → rank 3 IMPI greeting 00000005",
		"rank 0 → rank 3 IMPI DATA 0 -> 3 tag 42 cid 9 len 5/5",
		"rank 0 → rank 3 IMPI DATA 0 -> 3 tag 0 cid 0 len 0/0",
		"rank 0 → rank 3 IMPI DATASYNC 0 -> 3 tag -1 cid 0 len 300/1000",
		"rank 0 → rank 3 IMPI SYNCACK 0 -> 3 srqid 9 drqid 85",
		"rank 0 → rank 3 IMPI PROTOACK 0 -> 3",
		"rank 0 → rank 3 IMPI CANCEL 0 -> 3 srqid 7",
		"rank 0 → rank 3 IMPI CANCELYES 0 -> 3 srqid 7",
		"rank 0 → rank 3 IMPI CANCELNO 0 -> 3 srqid 7",
		"rank 0 → rank 3 IMPI FINI 0 -> 3",
		"rank 0 → rank 3 IMPI end of stream",
	})
	expect(t, "without ranks", list(t, captured(t, stream[:wire.HeaderSize+5]))[:1],
		[]string{"192.0.2.1/11 → 192.0.2.2/22 IMPI DATA 192.0.2.1/11 -> 192.0.2.2/22 tag 42 cid 9 len 5/5"})
}

// TestDissectorPointsAtOddities: the dissector marks what Wireshark calls expert
// information.
func TestDissectorPointsAtOddities(t *testing.T) {
	draft := func(p wire.Packet, upper byte) []byte {
		b := make([]byte, wire.HeaderSize)
		p.Src, p.Dest = wire.Proc{Host: host(1), PID: 1}, wire.Proc{Host: host(2), PID: 2}
		wire.Draft.PutHeader(b, &p)
		b[83] = upper
		return b
	}
	nobody := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(nobody, &wire.Packet{Type: wire.PkProtoAck})
	for want, c := range map[string]struct {
		stream []byte
		opts   []trace.Option
	}{
		"The packet has more data than its message": {stream: packet(wire.Packet{Len: 5, MsgLen: 4}, "12345")},
		"An empty packet of a message":              {stream: packet(wire.Packet{MsgLen: 4}, "")},
		"whatever pk_len says":                      {stream: packet(wire.Packet{Type: wire.PkProtoAck, Len: 128}, "")},
		"Messages of users have tags from 0":        {stream: packet(wire.Packet{Tag: -7}, "")},
		"Reserved bits are set":                     {stream: packet(wire.Packet{Reserved: 1}, "")},
		"A message is cancelled":                    {stream: packet(wire.Packet{Type: wire.PkCancel}, "")},
		"names no sender or no receiver":            {stream: nobody},
		"The tag does not fit into 32 bits":         {draft(wire.Packet{Tag: 5}, 1), []trace.Option{trace.Dialect(wire.Draft)}},
		"3 of 9 bytes of data are in the capture":   {packet(wire.Packet{Len: 9, MsgLen: 9}, "123456789"), []trace.Option{trace.Snap(3)}},
		"The link did not end as it should":         {stream: []byte("AUTH")},
	} {
		if text := strings.Join(tshark(t, captured(t, c.stream, c.opts...), "-V"), "\n"); !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	fine := draft(wire.Packet{Tag: 5}, 0)
	for _, line := range tshark(t, captured(t, fine, trace.Dialect(wire.Draft)), "-V") {
		if strings.Contains(line, "Expert") {
			t.Errorf("a packet without oddities: %s", line)
		}
	}
}

// fields are the dissector's names of what a wire.Packet has, and its values as
// tshark prints them.
var fields = []struct {
	name string
	of   func(*wire.Packet, wire.Dialect) any
}{
	{"impi.type", func(p *wire.Packet, _ wire.Dialect) any { return uint32(p.Type) }},
	{"impi.len", func(p *wire.Packet, _ wire.Dialect) any { return p.Len }},
	{"impi.src.host", func(p *wire.Packet, _ wire.Dialect) any { return netip.AddrFrom16(p.Src.Host) }},
	{"impi.src.pid", func(p *wire.Packet, _ wire.Dialect) any { return p.Src.PID }},
	{"impi.dst.host", func(p *wire.Packet, _ wire.Dialect) any { return netip.AddrFrom16(p.Dest.Host) }},
	{"impi.dst.pid", func(p *wire.Packet, _ wire.Dialect) any { return p.Dest.PID }},
	{"impi.srqid", func(p *wire.Packet, _ wire.Dialect) any { return uint64(p.SrcReq) }},
	{"impi.drqid", func(p *wire.Packet, _ wire.Dialect) any { return uint64(p.DestReq) }},
	{"impi.msglen", func(p *wire.Packet, _ wire.Dialect) any { return p.MsgLen }},
	{"impi.lsrank", func(p *wire.Packet, d wire.Dialect) any {
		if d == wire.Draft {
			return ""
		}
		return int32(p.LSRank)
	}},
	{"impi.tag", func(p *wire.Packet, _ wire.Dialect) any { return int32(p.Tag) }},
	{"impi.cid", func(p *wire.Packet, _ wire.Dialect) any { return uint64(p.Context) }},
	{"impi.seqnum", func(p *wire.Packet, _ wire.Dialect) any { return p.Seq }},
	{"impi.count", func(p *wire.Packet, _ wire.Dialect) any { return p.Count }},
	{"impi.dtype", func(p *wire.Packet, _ wire.Dialect) any { return p.Datatype }},
	{"impi.reserved", func(p *wire.Packet, _ wire.Dialect) any { return p.Reserved }},
}

// randomPacket has anything in every field, but a length that can be sent.
func randomPacket(rng *rand.Rand, d wire.Dialect) (header []byte, data []byte) {
	any64 := func() uint64 { return rng.Uint64() >> rng.IntN(64) }
	p := wire.Packet{
		Type: wire.PacketType(rng.IntN(8)), SrcReq: wire.RequestID(any64()), DestReq: wire.RequestID(any64()),
		MsgLen: any64(), LSRank: wire.CommRank(int32(rng.Uint32())), Tag: wire.Tag(int32(rng.Uint32())),
		Context: wire.ContextID(any64()), Seq: any64(), Count: int64(rng.Uint64()), Datatype: any64(), Reserved: any64(),
		Src: wire.Proc{Host: host(byte(rng.IntN(256))), PID: int64(rng.Uint64())}, Dest: wire.Proc{PID: math.MinInt64},
	}
	for i := range p.Dest.Host {
		p.Dest.Host[i] = byte(rng.IntN(256))
	}
	if p.Type.HasData() {
		data = make([]byte, rng.IntN(50))
		for i := range data {
			data[i] = byte(rng.IntN(256))
		}
		p.Len = uint32(len(data))
	} else {
		p.Len = rng.Uint32()
	}
	header = make([]byte, wire.HeaderSize)
	d.PutHeader(header, &p)
	return header, data
}

// Whatever is in a packet, the dissector reads the same as the decoder.
func TestDissectorAgreesWithDecoder(t *testing.T) {
	for _, d := range []wire.Dialect{wire.Published, wire.Draft} {
		rng := rand.New(rand.NewPCG(4, uint64(d)))
		var stream []byte
		var want []string
		for range 300 {
			header, data := randomPacket(rng, d)
			stream = append(append(stream, header...), data...)
			var p wire.Packet
			d.Header(header, &p)
			var row []string
			for _, f := range fields {
				row = append(row, fmt.Sprint(f.of(&p, d)))
			}
			want = append(want, strings.Join(append(row, fmt.Sprintf("%x", data)), "\t"))
		}
		args := []string{"-Y", "impi", "-T", "fields"}
		for _, f := range fields {
			args = append(args, "-e", f.name)
		}
		got := tshark(t, captured(t, stream, trace.Dialect(d)), append(args, "-e", "impi.data")...)
		for i := range got {
			got[i] = canonical(got[i])
		}
		expect(t, fmt.Sprintf("dialect %d", d), got, want)
	}
}

// canonical gives numbers and addresses as Go prints them.
func canonical(row string) string {
	values := strings.Split(row, "\t")
	for i, v := range values[:len(values)-1] {
		if hex, ok := strings.CutPrefix(v, "0x"); ok {
			n, _ := strconv.ParseUint(hex, 16, 64)
			values[i] = strconv.FormatUint(n, 10)
		} else if a, err := netip.ParseAddr(v); err == nil {
			values[i] = a.String()
		}
	}
	return strings.Join(values, "\t")
}

// Files of several procs, and of several runs, are merged by time.
func TestMergedCaptures(t *testing.T) {
	skips.Program(t, "tshark")
	merge := skips.Program(t, "mergecap")
	dir := t.TempDir()
	var procs [2]*trace.Capture
	for i := range procs {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		procs[i] = trace.NewCapture(f, fmt.Sprint("rank ", i))
	}
	a, b := linktest.Pair(1000)
	ra, rb := procs[0].Link(a, "to 1", trace.Between(0, 1)), procs[1].Link(b, "to 0", trace.Between(1, 0))
	for range 2 {
		ra.Send([][]byte{packet(wire.Packet{Type: wire.PkProtoAck}, "")})
		rb.Recv([][]byte{make([]byte, 500)})
		rb.Send([][]byte{packet(wire.Packet{Type: wire.PkFini}, "")})
		ra.Recv([][]byte{make([]byte, 500)})
	}
	all := filepath.Join(dir, "all.pcapng")
	if out, err := exec.Command(merge, "-w", all, filepath.Join(dir, "0"), filepath.Join(dir, "1")).CombinedOutput(); err != nil {
		t.Fatalf("mergecap: %v\n%s", err, out)
	}
	file, err := os.ReadFile(all)
	if err != nil {
		t.Fatal(err)
	}
	got := tshark(t, file, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.packet_flags_direction", "-e", "impi.type")
	turn := []string{"to 1\t0x00000002\t2", "to 0\t0x00000001\t2", "to 0\t0x00000002\t7", "to 1\t0x00000001\t7"}
	expect(t, "merged", got, append(turn, turn...))
}
