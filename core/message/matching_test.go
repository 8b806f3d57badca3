package message

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// textbook is the matching of one proc as MPI's text describes it: two lists.
type textbook struct {
	*Engine
	t          *rapid.T
	posted     []*wanted
	unexpected []*arrived
	receives   []*wanted
	taken      []*taken
	n          int
}

// wanted is a receive, and the number of the message that it should get: 0 if none yet, -1
// after a cancel.
type wanted struct {
	env Envelope
	r   *Request
	buf []byte
	got int
}

type arrived struct {
	env  Envelope
	id   wire.RequestID // of the sender, who uses it again
	n    int
	size int
}

type taken struct {
	m *Message
	a *arrived
}

func (env Envelope) admits(m Envelope) bool {
	return env.Context == m.Context && (env.Rank == AnySource || env.Rank == m.Rank) && (env.Tag == AnyTag || env.Tag == m.Tag)
}

func drawEnvelope(t *rapid.T, low int) Envelope {
	return Envelope{
		Context: wire.ContextID(rapid.IntRange(0, 1).Draw(t, "context")),
		Rank:    wire.CommRank(rapid.IntRange(low, 3).Draw(t, "rank")),
		Tag:     wire.Tag(rapid.IntRange(low, 3).Draw(t, "tag")),
	}
}

// arrive has a message come, whole, with its number as its data.
func (x *textbook) arrive() {
	x.n++
	env := drawEnvelope(x.t, 0)
	env.Rank = max(env.Rank, 1) // 0 is the receiver
	id := wire.RequestID(rapid.IntRange(1, 3).Draw(x.t, "id"))
	data := fmt.Appendf(nil, "%d", x.n)
	h := wire.Packet{
		Type: wire.PkData, Len: uint32(len(data)), MsgLen: uint64(len(data)), SrcReq: id,
		Src: wire.Proc{PID: int64(env.Rank)}, Dest: wire.Proc{PID: 0}, LSRank: env.Rank, Tag: env.Tag, Context: env.Context,
	}
	raw := make([]byte, headerSize)
	wire.Published.PutHeader(raw, &h)
	raw = append(raw, data...)
	for len(raw) > 0 {
		n := rapid.IntRange(1, len(raw)).Draw(x.t, "piece")
		k := 0
		for _, b := range x.Input(0) {
			k += copy(b, raw[k:n])
		}
		raw = raw[k:]
		if err := x.Received(0, k); err != nil {
			x.t.Fatal(err)
		}
	}
	if i := slices.IndexFunc(x.posted, func(w *wanted) bool { return w.env.admits(env) }); i >= 0 {
		x.posted[i].got = x.n
		x.posted = slices.Delete(x.posted, i, i+1)
		return
	}
	x.unexpected = append(x.unexpected, &arrived{env, id, x.n, len(data)})
}

// find is the first message that a receive with env would get.
func (x *textbook) find(env Envelope) int {
	return slices.IndexFunc(x.unexpected, func(a *arrived) bool { return env.admits(a.env) })
}

func (x *textbook) receive() {
	w := &wanted{env: drawEnvelope(x.t, -1), buf: make([]byte, 10)}
	from := Peer(w.env.Rank)
	if w.env.Rank == AnySource {
		from = NoPeer
	}
	w.r = x.Recv(w.env, from, w.buf)
	x.receives = append(x.receives, w)
	if i := x.find(w.env); i >= 0 {
		w.got = x.unexpected[i].n
		x.unexpected = slices.Delete(x.unexpected, i, i+1)
		return
	}
	x.posted = append(x.posted, w)
}

func (x *textbook) cancel() {
	if len(x.receives) == 0 {
		return
	}
	w := rapid.SampledFrom(x.receives).Draw(x.t, "cancelled")
	x.Cancel(w.r)
	if i := slices.Index(x.posted, w); i >= 0 {
		x.posted = slices.Delete(x.posted, i, i+1)
		w.got = -1
	}
}

// revoke is a CANCEL of the sender: the youngest message with that id goes, if
// nobody has it.
func (x *textbook) revoke() {
	src, id := wire.CommRank(rapid.IntRange(1, 3).Draw(x.t, "sender")), wire.RequestID(rapid.IntRange(1, 3).Draw(x.t, "revoked"))
	h := wire.Packet{Type: wire.PkCancel, SrcReq: id, Src: wire.Proc{PID: int64(src)}}
	raw := make([]byte, headerSize)
	wire.Published.PutHeader(raw, &h)
	copy(x.Input(0)[0], raw)
	if err := x.Received(0, len(raw)); err != nil {
		x.t.Fatal(err)
	}
	for i, a := range slices.Backward(x.unexpected) {
		if a.env.Rank == src && a.id == id {
			x.unexpected = slices.Delete(x.unexpected, i, i+1)
			return
		}
	}
}

// probe asks with Probe, and sometimes takes the message away.
func (x *textbook) probe() {
	env := drawEnvelope(x.t, -1)
	st, ok := x.Probe(env, NoPeer)
	i := x.find(env)
	if ok != (i >= 0) {
		x.t.Fatalf("probe %+v: %v, want %v", env, ok, i >= 0)
	}
	if !ok {
		return
	}
	a := x.unexpected[i]
	if st.Source != a.env.Rank || st.Tag != a.env.Tag || st.Len != int64(a.size) || st.Peer != Peer(a.env.Rank) {
		x.t.Fatalf("probe %+v: %+v, want message %d of %+v", env, st, a.n, a.env)
	}
	if rapid.Bool().Draw(x.t, "take") {
		m, _, ok := x.Take(env, NoPeer)
		if !ok {
			x.t.Fatalf("message %d cannot be taken", a.n)
		}
		x.taken = append(x.taken, &taken{m, a})
		x.unexpected = slices.Delete(x.unexpected, i, i+1)
	}
}

// receiveTaken receives one of the messages that were taken, in any order.
func (x *textbook) receiveTaken() {
	if len(x.taken) == 0 {
		return
	}
	i := rapid.IntRange(0, len(x.taken)-1).Draw(x.t, "taken")
	w := &wanted{buf: make([]byte, 10), got: x.taken[i].a.n}
	w.r = x.RecvMessage(x.taken[i].m, w.buf)
	x.receives = append(x.receives, w)
	x.taken = slices.Delete(x.taken, i, i+1)
}

func (x *textbook) check() {
	for i, w := range x.receives {
		st := w.r.Status()
		switch {
		case w.r.Done() != (w.got != 0):
			x.t.Fatalf("receive %d %+v: done %v, should have %d", i, w.env, w.r.Done(), w.got)
		case w.got > 0 && (st.Cancelled || string(w.buf[:st.Len]) != fmt.Sprint(w.got)):
			x.t.Fatalf("receive %d %+v has %q %+v, should have %d", i, w.env, w.buf[:st.Len], st, w.got)
		case w.got < 0 && !st.Cancelled:
			x.t.Fatalf("receive %d %+v was cancelled and has %+v", i, w.env, st)
		}
	}
}

// TestMatchingAgainstTextbook: with wildcards, cancels from both sides, probes and messages
// that are taken, each receive gets the same message as with two plain lists.
func TestMatchingAgainstTextbook(t *testing.T) {
	procs := directoryOf(t, wire.Proc{PID: 0}, wire.Proc{PID: 1}, wire.Proc{PID: 2}, wire.Proc{PID: 3})
	rapid.Check(t, func(t *rapid.T) {
		e, err := New(Config{Directory: procs, MaxData: 64, AckMark: 1, HiWater: 1000})
		if err != nil {
			t.Fatal(err)
		}
		e.Attach(0)
		for p := range 3 {
			e.SetRoute(Peer(1+p), 0)
		}
		x := &textbook{Engine: e, t: t}
		steps := []func(){x.arrive, x.receive, x.cancel, x.revoke, x.probe, x.receiveTaken}
		weights := []int{0, 0, 0, 1, 1, 1, 2, 3, 4, 4, 5}
		if rapid.Bool().Draw(t, "eager") {
			weights = append(weights, 0, 0, 0, 0) // so that many are unexpected
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			steps[rapid.SampledFrom(weights).Draw(t, "step")]()
			x.check()
		}
	})
}
