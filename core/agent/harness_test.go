package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// hostLink and procLink are the links that the tests use.
func hostLink(h int) LinkID { return LinkID(100 + h) }
func procLink(r int) LinkID { return LinkID(r) }

// ident is the identity of world rank r on host h.
func ident(h, r int) wire.Proc {
	return wire.Proc{Host: wire.HostID{12: 10, 15: byte(h)}, PID: int64(1000 + r)}
}

// job makes a Config: sizes has the number of procs of each host, and every host
// is a client of its own.
func job(self int, sizes ...int) Config {
	c := Config{Self: wire.HostRank(self), MaxData: 1 << 16, AckMark: 64, HiWater: 256}
	for h, n := range sizes {
		c.Hosts = append(c.Hosts, Host{Client: wire.ClientRank(h)})
		for range n {
			c.Procs.Add(startup.ProcInfo{ID: ident(h, c.Procs.Len()), Host: wire.HostRank(h)})
		}
	}
	return c
}

// rig drives an agent whose links are byte slices.
type rig struct {
	*Agent
	t testing.TB
	c Config
}

func newRig(t testing.TB, c Config) *rig {
	t.Helper()
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{a, t, c}
}

// attachAll attaches every link that the job needs.
func (r *rig) attachAll() *rig {
	r.t.Helper()
	for h, host := range r.c.Hosts {
		if wire.HostRank(h) != r.c.Self && !host.Unlinked {
			r.must(r.AttachHost(hostLink(h), wire.HostRank(h)))
		}
	}
	for i, p := range r.c.Procs.All() {
		if p.Host == r.c.Self {
			r.must(r.AttachProc(procLink(int(i)), i))
		}
	}
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// packet makes a packet from world rank src to dest. Header-only types get a
// false pk_len, as some peers send.
func (r *rig) packet(kind wire.PacketType, src, dest, n int, seq uint64) []byte {
	p := wire.Packet{Type: kind, Seq: seq, Len: wire.HeaderSize, MsgLen: uint64(n)}
	if kind != wire.PkFini {
		p.Src, p.Dest = r.c.Procs.At(wire.WorldRank(src)).ID, r.c.Procs.At(wire.WorldRank(dest)).ID
	}
	b := make([]byte, wire.HeaderSize)
	if kind.HasData() {
		p.Len = uint32(n)
		b = make([]byte, wire.HeaderSize+n)
		for i := range n {
			b[wire.HeaderSize+i] = byte(seq*31 + uint64(i)*7 + uint64(i>>8))
		}
	}
	wire.Published.PutHeader(b, &p)
	return b
}

var errUnreadable = errors.New("Input says that the link must not be read")

// feed returns the agent bytes of a link, at most step at once.
func (r *rig) feed(l LinkID, b []byte, step int) error {
	r.t.Helper()
	for len(b) > 0 {
		in := r.Input(l)
		if in == nil {
			return errUnreadable
		}
		n := 0
		for _, x := range in {
			n += copy(x, b[n:min(len(b), step)])
		}
		if n == 0 {
			r.t.Fatalf("link %d: no room to read into", l)
		}
		b = b[n:]
		if err := r.Received(l, n); err != nil {
			return err
		}
	}
	return nil
}

// take sends up to limit bytes of a link and gives them.
func (r *rig) take(l LinkID, limit int) []byte {
	var all []byte
	for len(all) < limit && r.HasOutput(l) {
		n := 0
		for _, x := range r.Output(l) {
			k := min(len(x), limit-len(all))
			all = append(all, x[:k]...)
			n += k
		}
		if n == 0 {
			r.t.Fatalf("link %d: HasOutput, but Output is empty", l)
		}
		r.Sent(l, n)
	}
	return all
}

const everything = 1<<31 - 1

// cut splits a stream into packets; the rest is what does not make one.
func cut(b []byte) (packets [][]byte, rest []byte) {
	for len(b) >= wire.HeaderSize {
		n := wire.HeaderSize
		if wire.PacketType(binary.BigEndian.Uint32(b)).HasData() {
			n += int(binary.BigEndian.Uint32(b[4:]))
		}
		if n > len(b) {
			break
		}
		packets = append(packets, b[:n])
		b = b[n:]
	}
	return packets, b
}

// name returns a packet as "DATA 0->2 #7 len=3".
func (r *rig) name(b []byte) string {
	var p wire.Packet
	wire.Published.Header(b, &p)
	if p.Type == wire.PkFini {
		return "FINI"
	}
	rank := func(id wire.Proc) int {
		for i, x := range r.c.Procs.All() {
			if x.ID == id {
				return int(i)
			}
		}
		return -1
	}
	s := fmt.Sprintf("%v %d->%d #%d", p.Type, rank(p.Src), rank(p.Dest), p.Seq)
	if p.Type.HasData() {
		s += fmt.Sprintf(" len=%d", len(b)-wire.HeaderSize)
	}
	return s
}

// events takes all events.
func (r *rig) events() (all []Event) {
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		all = append(all, e)
	}
	return all
}

// wantEvents compares the events since the last call.
func (r *rig) wantEvents(why string, kinds ...EventKind) []Event {
	r.t.Helper()
	all := r.events()
	ok := len(all) == len(kinds)
	for i := 0; ok && i < len(kinds); i++ {
		ok = all[i].Kind == kinds[i]
	}
	if !ok {
		r.t.Fatalf("%s: events %v, want %v", why, all, kinds)
	}
	return all
}
