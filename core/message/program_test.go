package message

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// world is some engines and the links between them, which carry bytes in
// arbitrary pieces. Either all traffic goes through a switch, as through an
// agent, or each pair has its own link.
type world struct {
	t        *rapid.T
	cfg      Config
	engines  []*Engine
	direct   bool
	up       [][]byte // from proc i into the switch
	down     [][]byte // from the switch to proc i
	pipes    [][][]byte
	flight   map[[2]int]int // counted packets less what PROTOACKs gave back, by directed pair
	acks     map[[2]int]int
	counted  map[[2]int]int
	rooms    [][]*room    // by direct pipe: memory of the link, where it has some
	boxSides [][]*boxSide // by direct pipe: the fast-box messages of the link, where it takes some
	base     int64        // what peers allow each other to begin with, less than any real job's; -1: nothing is said
	pool     int64        // of each proc
	packet   [][]byte     // by direct pipe or switch input: what is seen of a packet so far
}

// room is a WritableMemory of a few bytes.
type room struct {
	mem  []byte
	used int
}

func (r *room) Reserve(n int) []byte {
	if len(r.mem)-r.used < n {
		return nil
	}
	r.used += n
	return r.mem[r.used-n : r.used]
}

func newWorld(t *rapid.T) *world { return linked(t, rapid.Bool().Draw(t, "direct")) }

func linked(t *rapid.T, direct bool) *world {
	w := &world{
		t: t, direct: direct,
		flight: map[[2]int]int{}, acks: map[[2]int]int{}, counted: map[[2]int]int{},
	}
	n := rapid.IntRange(2, 4).Draw(t, "procs")
	a := rapid.Uint32Range(1, 5).Draw(t, "ackmark")
	w.cfg = Config{
		MaxData: rapid.SampledFrom([]uint32{1, 2, 7, 64, 5000, 65536}).Draw(t, "maxdata"),
		AckMark: a, HiWater: rapid.Uint32Range(a, 8).Draw(t, "hiwater"),
		StageLimit: rapid.SampledFrom([]int{1, 16, 8192}).Draw(t, "stage"),
	}
	procs := make([]wire.Proc, n)
	for i := range procs {
		procs[i].PID = int64(i)
	}
	var err error
	if w.cfg.Directory, err = NewDirectory(procs); err != nil {
		t.Fatal(err)
	}
	w.base = rapid.SampledFrom([]int64{-1, 0, envelopeCost + 64, 3000, 50000}).Draw(t, "allowance")
	w.pool = rapid.SampledFrom([]int64{0, 700, 20000}).Draw(t, "pool")
	w.up, w.down, w.packet = make([][]byte, n), make([][]byte, n), make([][]byte, n*n)
	w.pipes, w.rooms, w.boxSides = make([][][]byte, n), make([][]*room, n), make([][]*boxSide, n)
	for i := range n {
		c := w.cfg
		c.Self = Peer(i)
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		w.engines = append(w.engines, e)
		w.pipes[i], w.rooms[i], w.boxSides[i] = make([][]byte, n), make([]*room, n), make([]*boxSide, n)
		if w.base >= 0 {
			setAllowances(e, w.base, w.pool)
		}
		w.wire(i, e)
	}
	return w
}

// setAllowances has e and each of its peers allow each other base, and e have such a pool.
func setAllowances(e *Engine, base, pool int64) {
	e.pool.size = pool
	for i := range e.directory.Len() {
		if p := e.peer(Peer(i)); p != e.self {
			p.allowance = allowance{on: true, limit: base, granted: base, base: base, next: base / 4}
		}
	}
}

// bounded makes sure that no proc keeps more of messages nobody has asked for than it has
// allowed, but for the heads of those that their senders still keep.
func (w *world) bounded() {
	if w.base < 0 {
		return
	}
	for i, e := range w.engines {
		n := e.Kept()
		for m := range e.unexpected.All() {
			if m.sync && len(m.buf) <= headData {
				n -= m.cost
			}
		}
		for _, s := range e.links { // of which a head is still coming, for a receive that has been posted since
			if s != nil && s.msg != nil && s.msg.req != nil && s.msg.sync && len(s.msg.buf) <= headData {
				n -= s.msg.cost
			}
		}
		if limit := w.base*int64(len(w.engines)-1) + w.pool; n > limit {
			w.t.Fatalf("proc %d keeps %d bytes that nobody has asked for, its limit is %d", i, n, limit)
		}
	}
}

// wire gives proc i its links: link 0 to the switch, or link p to proc p.
func (w *world) wire(i int, e *Engine) {
	if !w.direct {
		e.Attach(0)
	}
	for p := range w.cfg.Directory.Len() {
		switch {
		case p == i:
		case w.direct:
			e.AttachPeer(LinkID(p), Peer(p))
			e.SetRoute(Peer(p), LinkID(p))
			if size := rapid.SampledFrom([]int{0, 200, 1000, 20000}).Draw(w.t, "room"); size > 0 {
				w.rooms[i][p] = &room{mem: make([]byte, size)}
				e.InPlace(LinkID(p), w.rooms[i][p])
			}
			if p < i && rapid.Bool().Draw(w.t, "fast boxes") {
				w.boxSides[i][p], w.boxSides[p][i] = newBoxSides()
				e.UseFastBoxes(LinkID(p), w.boxSides[i][p])
				w.engines[p].UseFastBoxes(LinkID(i), w.boxSides[p][i])
			}
		default:
			e.SetRoute(Peer(p), 0)
		}
	}
}

// chop draws how many of n bytes move.
func (w *world) chop(n int) int {
	if n > 1 && rapid.Bool().Draw(w.t, "chop") {
		return rapid.IntRange(1, n).Draw(w.t, "bytes")
	}
	return n
}

// write takes output of proc i.
func (w *world) write(i int) bool {
	e, moved := w.engines[i], false
	for l := range e.links {
		out := bytes.Join(e.Output(LinkID(l)), nil)
		if w.direct && w.rooms[i][l] != nil && w.commit(i, l) {
			moved = true
		}
		if len(out) == 0 {
			continue
		}
		n := w.chop(len(out))
		e.Sent(LinkID(l), n)
		moved = true
		if w.direct {
			w.put(i, l, out[:n])
			continue
		}
		w.watch(i, out[:n], func(to int, packet []byte) { w.down[to] = append(w.down[to], packet...) })
	}
	return moved
}

// commit takes what proc i has written into a link's own memory, which leaves
// before any other output.
func (w *world) commit(i, l int) bool {
	r := w.rooms[i][l]
	out := r.mem[:r.used]
	w.put(i, l, out)
	clear(out)
	r.used = 0
	return len(out) > 0
}

// put has bytes of proc i leave by a direct link.
func (w *world) put(i, l int, out []byte) {
	w.watch(i*len(w.engines)+l, out, nil)
	w.pipes[i][l] = append(w.pipes[i][l], out...)
	if d := w.boxSides[i][l]; d != nil {
		d.written += uint64(len(out))
	}
}

// watch cuts a stream into packets, counts them, and checks the windows from
// outside.
func (w *world) watch(stream int, raw []byte, deliver func(to int, packet []byte)) {
	b := append(w.packet[stream], raw...)
	for len(b) >= headerSize {
		var h wire.Packet
		wire.Published.Header(b, &h)
		n := headerSize
		if h.Type.HasData() {
			n += int(h.Len)
		}
		if len(b) < n {
			break
		}
		w.count(&h)
		if deliver != nil {
			deliver(int(h.Dest.PID), b[:n])
		}
		b = b[n:]
	}
	w.packet[stream] = append([]byte(nil), b...)
}

func (w *world) count(h *wire.Packet) {
	pair := [2]int{int(h.Src.PID), int(h.Dest.PID)}
	if h.Type == wire.PkProtoAck {
		if w.base >= 0 && h.SrcReq == saysMore {
			return
		}
		w.acks[pair]++
		w.flight[[2]int{pair[1], pair[0]}] -= int(w.cfg.AckMark)
		return
	}
	w.counted[pair]++
	most := w.cfg.HiWater
	if e := w.engines[pair[0]]; e.peer(Peer(pair[1])).on && e.peer(Peer(pair[1])).link.peer != nil {
		most = directHiWater
	}
	if w.flight[pair]++; w.flight[pair] > int(most) {
		w.t.Fatalf("%d packets under way from %d to %d", w.flight[pair], pair[0], pair[1])
	}
	if h.Type == wire.PkData && h.DestReq != 0 && uint64(h.Len) == h.MsgLen {
		w.t.Fatal("a continuation packet looks like a short message")
	}
}

// read gives proc i what is there for it.
func (w *world) read(i int) bool {
	if !w.direct {
		return w.feed(i, 0, &w.down[i])
	}
	moved := false
	for p := range w.engines {
		switch {
		case p == i:
		case w.boxSides[i][p] != nil:
			moved = w.readBoxed(i, p) || moved
		default:
			moved = w.feed(i, LinkID(p), &w.pipes[p][i]) || moved
		}
	}
	return moved
}

// readBoxed is read for a link that takes fast-box messages: those that come next, and bytes up to
// the one after them.
func (w *world) readBoxed(i, p int) (moved bool) {
	d, pipe := w.boxSides[i][p], &w.pipes[p][i]
	moved, err := w.engines[i].TakeFastBoxes(LinkID(p))
	if err != nil {
		w.t.Fatal(err)
	}
	n := d.before(len(*pipe))
	now := (*pipe)[:n:n]
	moved = w.feed(i, LinkID(p), &now) || moved
	d.read += uint64(n - len(now))
	*pipe = (*pipe)[n-len(now):]
	return moved
}

func (w *world) feed(i int, l LinkID, from *[]byte) bool {
	if len(*from) == 0 {
		return false
	}
	raw := (*from)[:w.chop(len(*from))]
	n := 0
	if rapid.Bool().Draw(w.t, "in place") {
		n, err := w.engines[i].Arrived(l, raw)
		if n == 0 && err == nil && rapid.Bool().Draw(w.t, "in part") {
			n, err = w.engines[i].Begun(l, raw)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if *from = (*from)[n:]; n > 0 {
			return true
		}
	}
	for _, b := range w.engines[i].Input(l) {
		k := copy(b, raw)
		raw = raw[k:]
		n += k
	}
	*from = (*from)[n:]
	if err := w.engines[i].Received(l, n); err != nil {
		w.t.Fatal(err)
	}
	return true
}

// step moves some bytes of one proc.
func (w *world) step() {
	i := rapid.IntRange(0, len(w.engines)-1).Draw(w.t, "proc")
	if rapid.Bool().Draw(w.t, "write") {
		w.write(i)
	} else {
		w.read(i)
		w.bounded()
	}
}

// settle moves everything until nothing moves.
func (w *world) settle() {
	for moved := true; moved; {
		moved = false
		for i := range w.engines {
			moved = w.write(i) || moved
			moved = w.read(i) || moved
		}
		w.bounded()
	}
}

// checkQuiet makes sure that nothing is left and that each receiver has sent
// the PROTOACKs that it owes, not one more.
func (w *world) checkQuiet() {
	for i, e := range w.engines {
		if !e.Idle() {
			w.t.Fatalf("proc %d is not idle", i)
		}
		for p := range e.Pending() {
			w.t.Fatalf("proc %d: left behind: %v", i, p)
		}
	}
	for pair, n := range w.counted {
		if got, want := w.acks[[2]int{pair[1], pair[0]}], n/int(w.cfg.AckMark); got != want {
			w.t.Fatalf("%d packets from %d to %d: %d PROTOACKs, want %d", n, pair[0], pair[1], got, want)
		}
	}
}

// message is one of a program: context c is received by the pattern of class c.
type message struct {
	from, to, context, tag, seq int
	mode                        Mode
	data                        []byte
}

func (m *message) envelope() Envelope {
	return Envelope{Context: wire.ContextID(m.context), Rank: wire.CommRank(m.from), Tag: wire.Tag(m.tag)}
}

// pattern is how messages of this context are received.
func (m *message) pattern() (Envelope, Peer) {
	env, from := m.envelope(), Peer(m.from)
	if m.context&1 != 0 {
		env.Rank, from = AnySource, NoPeer
	}
	if m.context&2 != 0 {
		env.Tag = AnyTag
	}
	return env, from
}

func drawMessage(w *world, seq int) *message {
	t := w.t
	m := &message{
		from:    rapid.IntRange(0, len(w.engines)-1).Draw(t, "from"),
		to:      rapid.IntRange(0, len(w.engines)-1).Draw(t, "to"),
		context: rapid.IntRange(0, 3).Draw(t, "context"),
		tag:     rapid.IntRange(0, 2).Draw(t, "tag"),
		mode:    rapid.SampledFrom([]Mode{Standard, Synchronous, Buffered, Ready}).Draw(t, "mode"),
		seq:     seq,
	}
	d := int(w.cfg.MaxData)
	n := rapid.OneOf(
		rapid.IntRange(0, min(3*d, 200)),
		rapid.SampledFrom([]int{0, 1, d - 1, d, d + 1, 2 * d}),
	).Draw(t, "len")
	m.data = make([]byte, min(n, 150000))
	for i := range m.data {
		m.data[i] = byte(seq + i*7 + i>>8)
	}
	return m
}

// send starts the send of m, from memory or from a Source.
func (w *world) send(m *message) *Request {
	e, n := w.engines[m.from], int64(len(m.data))
	if rapid.Bool().Draw(w.t, "from a source") {
		return e.SendFrom(Peer(m.to), m.envelope(), m.mode, &strewn{tb: w.t, data: m.data}, n, n, 0)
	}
	return e.Send(Peer(m.to), m.envelope(), m.mode, m.data, n, 0)
}

// recv posts a receive into memory or into a Sink.
func (w *world) recv(at int, env Envelope, from Peer) (*Request, []byte) {
	buf := make([]byte, 150000)
	if rapid.Bool().Draw(w.t, "into a sink") {
		return w.engines[at].RecvInto(env, from, &gathered{tb: w.t, data: buf}), buf
	}
	return w.engines[at].Recv(env, from, buf), buf
}

// received is a receive of a program and what came into its buffer.
type received struct {
	r   *Request
	now *Status // of RecvEager, if there was no need for a request
	buf []byte
	m   *message // that it was posted for; it may get another one of its class
}

// status is what became of the receive.
func (q *received) status() (st Status, done bool) {
	if q.now != nil {
		return *q.now, true
	}
	return q.r.Status(), q.r.Done()
}

// post has m received, or another one of its class.
func (w *world) post(m *message) received {
	env, from := m.pattern()
	e := w.engines[m.to]
	if l, ok := e.EagerLink(from); ok && rapid.Bool().Draw(w.t, "at once") {
		buf := make([]byte, rapid.SampledFrom([]int{len(m.data), link.MaxFastBox}).Draw(w.t, "room"))
		if st, ok := e.RecvEager(l, &env, buf); ok {
			return received{nil, &st, buf, m}
		}
	}
	r, buf := w.recv(m.to, env, from)
	return received{r, nil, buf, m}
}

// Random legal programs come to their end with all messages in order, whatever
// the sizes, the windows, the link and the pieces.
func TestRandomPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		var sends []*Request
		var receives []received
		var messages []*message
		for _, e := range w.engines {
			if err := e.BufferSpace().Attach(1 << 30); err != nil {
				t.Fatal(err)
			}
		}
		var unposted []*message
		for seq := range rapid.IntRange(1, 40).Draw(t, "messages") {
			m := drawMessage(w, seq)
			messages = append(messages, m)
			early := rapid.Bool().Draw(t, "early")
			if early {
				receives = append(receives, w.post(m))
			} else {
				unposted = append(unposted, m)
			}
			if m.mode == Standard && rapid.Bool().Draw(t, "now") {
				if _, ok := w.engines[m.from].SendEager(Peer(m.to), m.envelope(), m.data, int64(len(m.data)), 0); ok {
					continue
				}
			}
			sends = append(sends, w.send(m))
			for range rapid.IntRange(0, 4).Draw(t, "steps") {
				w.step()
			}
		}
		for _, m := range unposted {
			receives = append(receives, w.post(m))
			w.step()
		}
		w.settle()
		for i, s := range sends {
			if !s.Done() || s.Err() != nil {
				t.Fatalf("send %d: done %v, %v", i, s.Done(), s.Err())
			}
		}
		checkReceived(t, messages, receives)
		w.checkQuiet()
	})
}

// Programs that mostly wait for one message at a time, as fast-box messages and RecvEager are for,
// have them in order, too.
func TestRandomEager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := linked(t, true)
		var messages, unposted []*message
		var receives []received
		for seq := range rapid.IntRange(1, 30).Draw(t, "messages") {
			m := drawMessage(w, seq)
			m.from, m.to, m.context, m.tag, m.mode = m.from%2, 1-m.from%2, m.context&2, m.tag%2, Standard // the fewer, the more is to be mistaken
			messages, unposted = append(messages, m), append(unposted, m)
			if _, ok := w.engines[m.from].SendEager(Peer(m.to), m.envelope(), m.data, int64(len(m.data)), 0); !ok {
				w.send(m)
			}
			for range rapid.IntRange(0, 2).Draw(t, "receives") {
				if rapid.Bool().Draw(t, "settle") {
					w.settle()
				}
				if len(unposted) > 0 {
					i := rapid.IntRange(0, len(unposted)-1).Draw(t, "which")
					receives = append(receives, w.post(unposted[i]))
					unposted = slices.Delete(unposted, i, i+1)
				}
			}
		}
		for _, m := range unposted {
			receives = append(receives, w.post(m))
		}
		w.settle()
		checkReceived(t, messages, receives)
		w.checkQuiet()
	})
}

// checkReceived: receives of one pattern at one proc, in the order of their
// posting, got the messages of each sender in the order of their sending.
func checkReceived(t *rapid.T, messages []*message, receives []received) {
	taken := map[*message]bool{}
	for i, q := range receives {
		st, done := q.status()
		if !done || st.Err != nil {
			t.Fatalf("receive %d: done %v, %v", i, done, st.Err)
		}
		var want *message
		for _, m := range messages {
			anyTag := m.context&2 != 0 // then messages of all tags are in one order
			if !taken[m] && m.to == q.m.to && m.context == q.m.context && m.from == int(st.Peer) && (anyTag || m.tag == int(st.Tag)) {
				want = m
				break
			}
		}
		if env, from := q.m.pattern(); env.Tag != AnyTag && env.Tag != st.Tag || from != NoPeer && from != st.Peer {
			t.Fatalf("receive %d of %+v from %d: %+v", i, env, from, st)
		}
		if want == nil {
			t.Fatalf("receive %d got a message that nobody sent: %+v", i, st)
		}
		taken[want] = true
		if want.tag != int(st.Tag) || st.Len != int64(len(want.data)) || !bytes.Equal(q.buf[:st.Len], want.data) || int(st.Source) != want.from {
			t.Fatalf("receive %d: %+v is not message %d of %d bytes", i, st, want.seq, len(want.data))
		}
	}
}

// A cancelled send and its receive agree: either both happened or none.
func TestRandomCancels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		type try struct {
			s, r *Request
			to   int
		}
		var tries []try
		for tag := range rapid.IntRange(1, 15).Draw(t, "messages") {
			m := drawMessage(w, tag)
			m.mode, m.context, m.tag = Synchronous, 0, tag
			q := try{to: m.to}
			if rapid.Bool().Draw(t, "early") {
				q.r, _ = w.recv(m.to, m.envelope(), Peer(m.from))
			}
			q.s = w.send(m)
			for range rapid.IntRange(0, 5).Draw(t, "steps") {
				w.step()
			}
			if rapid.Bool().Draw(t, "cancel") {
				w.engines[m.from].Cancel(q.s)
			}
			for range rapid.IntRange(0, 5).Draw(t, "steps") {
				w.step()
			}
			if q.r == nil {
				q.r, _ = w.recv(m.to, m.envelope(), Peer(m.from))
			}
			tries = append(tries, q)
		}
		w.settle()
		for i, q := range tries {
			if !q.s.Done() {
				t.Fatalf("send %d is not done", i)
			}
			if q.s.Status().Cancelled == q.r.Done() {
				t.Fatalf("message %d: cancelled %v, received %v", i, q.s.Status().Cancelled, q.r.Done())
			}
			w.engines[q.to].Cancel(q.r)
			if !q.r.Done() {
				t.Fatalf("receive %d cannot be cancelled", i)
			}
		}
		w.checkQuiet()
	})
}
