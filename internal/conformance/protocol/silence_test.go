package protocol

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/transports/transporttest"
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

// peered gives a channel between a host of the tester and a wrong one, of one proc each,
// and lets the wrong one answer what it is asked.
func peered(t *T, peer func(asked packet) []packet) *channel {
	j := &job{t: t, ackmark: 4, hiwater: 8, datalen: 100}
	j.control = newControl(j)
	ours, theirs := &host{rank: 0}, &host{rank: 1, client: &client{iut: true}}
	for i, h := range []*host{ours, theirs} {
		h.procs = []*proc{{rank: i, host: h, id: procID{pid: int64(i + 1)}}}
	}
	j.control.self = ours.procs[0]
	l := t.listen(loopback(1))
	far, err := net.Dial("tcp", l.addr.String())
	t.must(err)
	t.Cleanup(func() { _ = far.Close() })
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
	return j.addChannel(l.accept("the wrong host"), ours, theirs)
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
