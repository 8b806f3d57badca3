package play

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// A peer that sends what nobody wants when it is asked something, and not before, is
// found out: watching alone would not do it.
func TestStillByOrder(t *testing.T) {
	late := packet{typ: pkData, len: 3, msglen: 3, data: []byte("too")}
	for _, c := range []struct {
		name   string
		peer   func(asked packet) []packet
		reason string
	}{
		{"right", func(p packet) []packet { return []packet{no(p)} }, ""},
		{"late", func(p packet) []packet { return []packet{late, no(p)} }, "DATA"},
		{"no packet", func(p packet) []packet { return []packet{{typ: pkType(9)}, no(p)} }, "a packet of"},
		{"FINI", func(p packet) []packet { return []packet{{typ: pkFini}, no(p)} }, "FINI"},
		{"mute", func(packet) []packet { return nil }, ""},
	} {
		for how, watch := range map[string]func(*channel){
			"still": func(ch *channel) { ch.still("nothing may come") },
			"stays": func(ch *channel) { ch.stays("nothing may come") },
			"all":   func(ch *channel) { ch.j.still("nothing may come") },
		} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				out := transporttest.Record(func(inner transporttest.T) {
					watch(peered(&T{T: inner, trace: newTrace(), patience: 10 * time.Second}, c.peer))
				}, time.Minute)
				if pass := out.Verdict == transporttest.Pass; pass != (c.reason == "") || !strings.Contains(out.Reason, c.reason) {
					t.Errorf("%s %q", out.Verdict, out.Reason)
				}
			})
		}
	}
}

// no is the answer to CANCEL of a message that is not there.
func no(p packet) packet { return packet{typ: pkCancelNo, srqid: p.srqid} }

// peered returns a channel between a host of the tester and a wrong one, of one proc each,
// and lets the wrong one answer what it is asked.
func peered(t *T, peer func(asked packet) []packet) *channel {
	j := &job{server: server{layout: layout{t: t}, terms: terms{ackmark: 4, hiwater: 8, datalen: 100}}}
	j.control = newControl(j)
	ours, theirs := &host{rank: 0}, &host{rank: 1, client: &client{iut: true}}
	for i, h := range []*host{ours, theirs} {
		h.procs = []*proc{{rank: i, host: h, id: procID{pid: int64(i + 1)}}}
	}
	j.control.self = ours.procs[0]
	near, far := connected(t)
	go func() {
		for b := make([]byte, headerSize); ; {
			if _, err := io.ReadFull(far, b); err != nil {
				return
			}
			for _, p := range peer(parsePacket(b)) {
				p.src, p.dest = theirs.procs[0].id, ours.procs[0].id
				_, _ = far.Write(p.bytes()) // the test may be over
			}
		}
	}()
	return j.addChannel(near, ours, theirs)
}

// A probe that is answered when nobody waits for it any more was counted by the peer: it
// takes its place in the window after all.
func TestLateAnswer(t *testing.T) {
	var asked packet
	out := transporttest.Record(func(inner transporttest.T) {
		ch := peered(&T{T: inner, trace: newTrace(), patience: 10 * time.Second}, func(p packet) []packet {
			if p.typ == pkCancel {
				asked = p
				return nil
			}
			return []packet{no(asked), {typ: pkData}}
		})
		from, to := ch.local.procs[0], ch.remote.procs[0]
		sent := func() int {
			ch.mu.Lock()
			defer ch.mu.Unlock()
			return ch.window(from.id, to.id).sent
		}
		ch.probe()
		if n := sent(); n != 0 || !ch.deaf {
			t.Errorf("%d packets of a window are in use by a probe that was not answered, deaf %v", n, ch.deaf)
		}
		ch.send(packet{typ: pkProtoAck, src: from.id, dest: to.id})
		ch.expect(pkData, "what comes behind the answer")
		if n := sent(); n != 1 {
			t.Errorf("%d packets of a window are in use by a probe that was answered late", n)
		}
	}, time.Minute)
	if out.Verdict != transporttest.Pass {
		t.Errorf("%s %q", out.Verdict, out.Reason)
	}
}

// A client that has not waited for the server is found out when that hangs up, whenever
// it has said what it must not.
func TestUnanswered(t *testing.T) {
	for _, c := range []struct {
		name   string
		client func(server net.Conn, host *listener)
		reason string
	}{
		{"waits", func(s net.Conn, _ *listener) { _ = s.Close() }, ""},
		{"says", func(s net.Conn, _ *listener) { _, _ = s.Write(record{cmd: cmdDone}.bytes()); _ = s.Close() }, "444f4e45"},
		{"says one byte", func(s net.Conn, _ *listener) { _, _ = s.Write([]byte{7}); _ = s.Close() }, "07 came"},
		{"connects", func(s net.Conn, h *listener) {
			if c, err := net.Dial("tcp", h.addr.String()); err == nil {
				defer c.Close()
			}
			_ = s.Close()
		}, "host 0 was connected to"},
		{"stays", func(net.Conn, *listener) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := transporttest.Record(func(inner transporttest.T) {
				tt := &T{T: inner, trace: newTrace(), patience: 10 * time.Second}
				h := tt.listen(loopback(1))
				asked, client := connected(tt)
				j := &server{layout: layout{t: tt, hosts: []*host{{listen: h}}}, conn: asked, run: &process{ended: make(chan struct{})}}
				go func() {
					_, _ = io.Copy(io.Discard, client) // until the server has hung up
					c.client(client, h)
					close(j.run.ended)
				}()
				j.unanswered("the server has said nothing")
			}, time.Minute)
			if pass := out.Verdict == transporttest.Pass; pass != (c.reason == "") || !strings.Contains(out.Reason, c.reason) {
				t.Errorf("%s %q", out.Verdict, out.Reason)
			}
		})
	}
}

// A server may say why it gives up in a command of its own, and nothing else.
func TestUnansweredByServer(t *testing.T) {
	for name, c := range map[string]struct {
		said   []byte
		reason string
	}{
		"nothing":     {nil, ""},
		"its own":     {record{0x4641494c, []byte("why")}.bytes(), ""},
		"an answer":   {record{cmdIMPI, u32(3)}.bytes(), "494d5049"},
		"half of one": {[]byte("IMP"), "494d50 came"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := transporttest.Record(func(inner transporttest.T) {
				tt := &T{T: inner, trace: newTrace(), patience: 10 * time.Second}
				first, one := connected(tt)
				second, other := connected(tt)
				go func() {
					_, _ = io.Copy(io.Discard, one)
					_, _ = other.Write(c.said)
					_ = one.Close()
					_ = other.Close()
				}()
				unanswered("a client is missing", first, second)
			}, time.Minute)
			if pass := out.Verdict == transporttest.Pass; pass != (c.reason == "") || !strings.Contains(out.Reason, c.reason) {
				t.Errorf("%s %q", out.Verdict, out.Reason)
			}
		})
	}
}

// connected returns the tester's end of a connection and the other one.
func connected(t *T) (ours *conn, theirs net.Conn) {
	l := t.listen(loopback(1))
	theirs, err := net.Dial("tcp", l.addr.String())
	t.must(err)
	t.Cleanup(func() { _ = theirs.Close() })
	return l.accept("the IUT"), theirs
}
