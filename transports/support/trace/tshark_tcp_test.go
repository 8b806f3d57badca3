package trace_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// wiretap makes a pcapng file of TCP connections, as tcpdump would.
type wiretap struct {
	file bytes.Buffer
	next map[[2]uint16]uint32 // sequence numbers, by ports
}

func newWiretap() *wiretap {
	w := &wiretap{next: map[[2]uint16]uint32{}}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0x0a0d0d0a)
	b = le.AppendUint32(le.AppendUint32(b, 28), 0x1a2b3c4d)
	b = le.AppendUint32(append(b, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255), 28)
	b = le.AppendUint32(le.AppendUint32(b, 1), 20)
	b = append(b, 101, 0, 0, 0) // raw IP
	b = le.AppendUint32(le.AppendUint32(b, 1<<18), 20)
	w.file.Write(b)
	return w
}

// send has a segment go from one port to the other.
func (w *wiretap) send(from, to uint16, data []byte) {
	be, le := binary.BigEndian, binary.LittleEndian
	ip := make([]byte, 40, 40+len(data))
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	be.PutUint16(ip[2:], uint16(40+len(data)))
	copy(ip[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	if from < to {
		copy(ip[12:], []byte{192, 0, 2, 2, 192, 0, 2, 1})
	}
	be.PutUint16(ip[20:], from)
	be.PutUint16(ip[22:], to)
	be.PutUint32(ip[24:], w.next[[2]uint16{from, to}])
	be.PutUint32(ip[28:], w.next[[2]uint16{to, from}])
	ip[32], ip[33] = 5<<4, 0x18 // PSH, ACK
	be.PutUint16(ip[34:], 65535)
	w.next[[2]uint16{from, to}] += uint32(len(data))
	ip = append(ip, data...)
	n := uint32(len(ip))
	total := 32 + (n+3)&^3
	b := le.AppendUint32(nil, 6)
	b = le.AppendUint32(b, total)
	b = append(b, make([]byte, 12)...)
	b = le.AppendUint32(le.AppendUint32(b, n), n)
	b = append(append(b, ip...), make([]byte, (4-n%4)%4)...)
	w.file.Write(le.AppendUint32(b, total))
}

// The ports: of a server, a client, two hosts.
const server, client, host0, host1 = 7800, 40001, 7801, 40002

func u32(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

// startup is the exchange of one client with its server.
func startup(w *wiretap) {
	ask := func(b []byte) { w.send(client, server, b) }
	tell := func(b []byte) { w.send(server, client, b) }
	coll := func(l wire.Label, mask wire.ClientMask, data []byte) []byte {
		return append(wire.AppendAnswer(nil, l, mask, len(data)), data...)
	}
	ask(wire.AppendAuth(nil, 3))
	tell(wire.AppendAuthChoice(nil, 1))
	ask(wire.AppendKey(nil, 0x1122334455667788))
	ask(wire.AppendIMPI(nil, 1))
	tell(wire.AppendIMPI(nil, 2))
	ask(wire.AppendColl(nil, wire.LabelVersion, u32(0, 0)))
	tell(coll(wire.LabelVersion, 3, u32(0, 0, 0, 0x10001)))
	both := append(coll(wire.LabelHostPort, 3, u32(host0, 0)), coll(wire.LabelProcPID, 3, append(u32(0, 4242), u32(0, 777)...))...)
	tell(both[:30]) // cut anywhere
	tell(both[30:])
	ask(wire.AppendCommand(nil, wire.CmdDone, 0))
	ask(wire.AppendFail(nil, "no more coffee"))
}

func TestDissectorFindsStartup(t *testing.T) {
	w := newWiretap()
	startup(w)
	expect(t, "packet list", list(t, w.file.Bytes(), "-Y", "impi"), []string{
		"192.0.2.1 → 192.0.2.2 IMPI AUTH",
		"192.0.2.2 → 192.0.2.1 IMPI AUTH answer KEY",
		"192.0.2.1 → 192.0.2.2 IMPI AUTH key",
		"192.0.2.1 → 192.0.2.2 IMPI IMPI client 1",
		"192.0.2.2 → 192.0.2.1 IMPI IMPI clients 2",
		"192.0.2.1 → 192.0.2.2 IMPI COLL C_VERSION",
		"192.0.2.2 → 192.0.2.1 IMPI COLL C_VERSION",
		"192.0.2.2 → 192.0.2.1 IMPI COLL H_PORT",
		"192.0.2.2 → 192.0.2.1 IMPI COLL P_PID",
		"192.0.2.1 → 192.0.2.2 IMPI DONE",
		"192.0.2.1 → 192.0.2.2 IMPI FAIL: no more coffee",
	})
	got := tshark(t, w.file.Bytes(), "-Y", "impi", "-T", "fields", "-e", "impi.auth.mechanism", "-e", "impi.auth.key",
		"-e", "impi.label", "-e", "impi.label.clients", "-e", "impi.label.version", "-e", "impi.label.value")
	expect(t, "values", got, []string{
		"\t\t\t\t\t", "1\t\t\t\t\t", "\t0x1122334455667788\t\t\t\t", "\t\t\t\t\t", "\t\t\t\t\t",
		"\t\t0x00001000\t\t0.0\t",
		"\t\t0x00001000\t0x00000003\t0.0,0.65537\t",
		"\t\t0x00002100\t0x00000003\t\t7801,0",
		"\t\t0x00003100\t0x00000003\t\t4242,777",
		"\t\t\t\t\t", "\t\t\t\t\t",
	})
}

// The draft's pids have half the size.
func TestDissectorHasADialect(t *testing.T) {
	w := newWiretap()
	w.send(client, server, wire.AppendAuth(nil, 1))
	w.send(client, server, wire.AppendColl(nil, wire.LabelProcPID, u32(4242, 777)))
	header := make([]byte, wire.HeaderSize)
	wire.Draft.PutHeader(header, &wire.Packet{Tag: -3, Src: wire.Proc{Host: host(1), PID: 1}, Dest: wire.Proc{Host: host(2), PID: 1}})
	w.send(host1, host0, header)
	got := tshark(t, w.file.Bytes(), "-o", "impi.dialect:Draft of March 1999", "-Y", "impi", "-T", "fields",
		"-e", "impi.label.value", "-e", "impi.tag64")
	expect(t, "values", got, []string{"\t", "4242,777\t", "\t-3"})
}

func TestDissectorFindsChannels(t *testing.T) {
	stream, _ := conversation()
	want := []string{"greeting of host 1"}
	for _, what := range []string{
		"DATA % tag 42 cid 9 len 5/5", "DATA % tag 0 cid 0 len 0/0", "DATASYNC % tag -1 cid 0 len 300/1000",
		"SYNCACK % srqid 9 drqid 85", "PROTOACK %", "CANCEL % srqid 7", "CANCELYES % srqid 7", "CANCELNO % srqid 7", "FINI",
	} {
		want = append(want, strings.Replace(what, "%", "192.0.2.1/11 -> 192.0.2.2/22", 1))
	}
	for name, cut := range map[string]int{"with the greeting alone": 4, "with more": 1000} {
		w := newWiretap()
		startup(w) // tells the port
		all := append(u32(1), stream...)
		for len(all) > 0 {
			n := min(cut, len(all))
			w.send(host1, host0, all[:n])
			all, cut = all[n:], 700
		}
		w.send(host0, host1, stream[:133])
		var infos []string
		// Wireshark dissects packets repeatedly and in any order; so does -2.
		for _, l := range list(t, w.file.Bytes(), "-2", "-Y", "impi && tcp.port == 7801") {
			_, info, _ := strings.Cut(l, " IMPI ")
			infos = append(infos, strings.Split(info, "; ")...)
		}
		expect(t, name, infos, append(want, "DATA 192.0.2.1/11 -> 192.0.2.2/22 tag 42 cid 9 len 5/5"))
	}
}

// A channel that began before the capture is found by its headers.
func TestDissectorFindsChannelInTheMiddle(t *testing.T) {
	stream, _ := conversation()
	w := newWiretap()
	w.send(host1, host0, stream[:133])
	w.send(host1, host0, stream[133:])
	if lines := list(t, w.file.Bytes()); len(lines) != 2 || !strings.Contains(lines[0], "IMPI DATA") || !strings.Contains(lines[1], "; FINI") {
		t.Errorf("%q", lines)
	}
}

func TestDissectorFindsDirectLinks(t *testing.T) {
	stream, _ := conversation()
	message := func(kind uint32, n int, head ...uint32) []byte {
		b := append(u32(0x49444c01, kind), u32(head...)...)
		return append(b, make([]byte, n-len(b))...)
	}
	hello := message(1, 64)
	copy(hello[56:], u32(3, 5))
	w := newWiretap()
	w.send(host1, host0, hello)
	w.send(host0, host1, message(2, 40))
	w.send(host1, host0, message(3, 40))
	w.send(host0, host1, message(4, 44, 4))
	w.send(host1, host0, stream[:133])
	var infos []string
	for _, l := range list(t, w.file.Bytes()) {
		_, info, _ := strings.Cut(l, " IMPI ")
		infos = append(infos, info)
	}
	expect(t, "packet list", infos, []string{
		"direct link HELLO 3 -> 5", "direct link CHALLENGE", "direct link PROOF", "direct link VERDICT 4",
		"DATA 192.0.2.1/11 -> 192.0.2.2/22 tag 42 cid 9 len 5/5",
	})
}

func TestDissectorLeavesOthersAlone(t *testing.T) {
	w := newWiretap()
	for _, b := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x01", strings.Repeat("\x00", 300), strings.Repeat("\xff", 300), "AUTH PLAIN abc\r\n"} {
		w.send(host1, host0, []byte(b))
	}
	if lines := list(t, w.file.Bytes(), "-Y", "impi"); len(lines) != 1 || lines[0] != "" {
		t.Errorf("taken for IMPI: %q", lines)
	}
}
