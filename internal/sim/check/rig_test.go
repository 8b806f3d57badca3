package check

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"
)

// The rig is a job of three clients with a host each:
//
//	client 0, own:     host 0, procs 0 and 1
//	client 1, own:     host 1, procs 2 and 3
//	client 2, foreign: host 2, proc 4, without links of its own
//
// Data length 8, ackmark 2, hiwater 4. It has all links but those to the server,
// and a direct one between procs 0 and 2.
type rig struct {
	t     *testing.T
	c     *Checker
	ids   map[[2]Endpoint]int // of links, by both orders of their ends
	first map[int]Endpoint
	left  map[[2]Endpoint]int // bytes written and not read, by writer and reader
	err   error
	later time.Duration // than when it began
}

const (
	testDatalen = 8
	testAckMark = 2
	testHiWater = 4
)

func identity(rank int) (id [IdentitySize]byte) {
	binary.BigEndian.PutUint32(id[12:], 0x7f000001)
	binary.BigEndian.PutUint64(id[16:], uint64(1000+rank))
	return id
}

func testJob() Job {
	return Job{
		Datalen: testDatalen, AckMark: testAckMark, HiWater: testHiWater,
		Procs: []Proc{{identity(0), 0}, {identity(1), 0}, {identity(2), 1}, {identity(3), 1}, {identity(4), 2}},
		Hosts: []Host{{Client: 0, Own: true}, {Client: 1, Own: true}, {Client: 2, Foreign: true, Whole: true}},
	}
}

func newChecker(t testing.TB, job Job) *Checker {
	t.Helper()
	c, err := New(job)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func bare(t *testing.T) *rig {
	return &rig{
		t: t, c: newChecker(t, testJob()),
		ids: make(map[[2]Endpoint]int), first: make(map[int]Endpoint), left: make(map[[2]Endpoint]int),
	}
}

func newRig(t *testing.T) *rig {
	r := bare(t)
	for rank, p := range testJob().Procs[:4] {
		r.link(ProcEnd(rank), AgentEnd(p.Host))
	}
	r.link(ProcEnd(0), ProcEnd(2))
	for _, ends := range [][2]int{{1, 0}, {2, 0}, {2, 1}} {
		r.link(AgentEnd(ends[0]), AgentEnd(ends[1]))
		r.hop(AgentEnd(ends[0]), AgentEnd(ends[1]), []byte{0, 0, 0, byte(ends[0])})
	}
	r.must()
	return r
}

func (r *rig) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *rig) must() {
	r.t.Helper()
	if r.err != nil {
		r.t.Fatal(r.err)
	}
}

func (r *rig) link(a, b Endpoint) {
	id := len(r.first) + 100
	r.ids[[2]Endpoint{a, b}], r.ids[[2]Endpoint{b, a}] = id, id
	r.first[id] = a
	r.note(r.c.Link(id, a, b))
}

func (r *rig) id(a, b Endpoint) int {
	r.t.Helper()
	id, ok := r.ids[[2]Endpoint{a, b}]
	if !ok {
		r.t.Fatalf("no link between %v and %v", a, b)
	}
	return id
}

// write writes b in two pieces.
func (r *rig) write(from, to Endpoint, b []byte) {
	r.t.Helper()
	id := r.id(from, to)
	r.left[[2]Endpoint{from, to}] += len(b)
	for _, piece := range [][]byte{b[:len(b)/3], b[len(b)/3:]} {
		if r.err == nil {
			r.note(r.c.Sent(id, r.first[id] == from, piece, time.Millisecond+r.later))
		}
	}
}

// read reads all that was written.
func (r *rig) read(from, to Endpoint) {
	r.t.Helper()
	r.readSome(from, to, r.left[[2]Endpoint{from, to}])
}

func (r *rig) readSome(from, to Endpoint, n int) {
	r.t.Helper()
	id := r.id(from, to)
	r.left[[2]Endpoint{from, to}] -= n
	for _, k := range []int{n / 2, n - n/2} {
		if r.err == nil {
			r.note(r.c.Received(id, r.first[id] == to, k, time.Millisecond+r.later))
		}
	}
}

func (r *rig) hop(from, to Endpoint, b []byte) {
	r.t.Helper()
	r.write(from, to, b)
	r.read(from, to)
}

// way returns the endpoints that a packet passes from one proc to another.
func way(src, dest int) []Endpoint {
	job := testJob()
	g, h := job.Procs[src].Host, job.Procs[dest].Host
	var w []Endpoint
	if !job.Hosts[g].Whole {
		w = append(w, ProcEnd(src))
	}
	w = append(w, AgentEnd(g))
	if g != h {
		w = append(w, AgentEnd(h))
	}
	if !job.Hosts[h].Whole {
		w = append(w, ProcEnd(dest))
	}
	return w
}

// carry moves packets of one pair to their destination by the agents, one by one.
func (r *rig) carry(packets ...pk) {
	r.t.Helper()
	for _, p := range packets {
		w := way(p.src, p.dest)
		for i := range w[1:] {
			r.hop(w[i], w[i+1], p.bytes())
		}
	}
}

// ended ends a proc that has finished.
func (r *rig) ended(rank int) {
	id := r.id(ProcEnd(rank), AgentEnd(testJob().Procs[rank].Host))
	r.note(r.c.Ended(id, r.first[id] == ProcEnd(rank)))
}

// end ends all procs, exchanges FINI everywhere and finishes.
func (r *rig) end() {
	r.t.Helper()
	for rank := range 4 {
		r.ended(rank)
	}
	for _, from := range []int{0, 1, 2} {
		for _, to := range []int{0, 1, 2} {
			if from != to {
				r.hop(AgentEnd(from), AgentEnd(to), pk{typ: pkFini}.bytes())
			}
		}
	}
	r.note(r.c.Finish(true))
}

// wants checks that the rule that should have been violated was found.
func wants(t *testing.T, err error, want Rule) {
	t.Helper()
	var v *Violation
	switch {
	case want == "" && err != nil:
		t.Errorf("found %v, want nothing", err)
	case want == "":
	case !errors.As(err, &v):
		t.Errorf("found %v, want a violation of %s", err, want)
	case v.Rule != want:
		t.Errorf("found %v, want a violation of %s", err, want)
	}
}

// script is a test: a sequence of events, and the rule that it violates, or "".
type script struct {
	name string
	want Rule
	run  func(r *rig)
}

func runScripts(t *testing.T, scripts []script) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(t)
			s.run(r)
			if s.want == "" {
				r.end()
			}
			wants(t, r.err, s.want)
		})
	}
}

// pk is a packet to build; its fields are named as in the standard. len is pk_len, data is what
// follows: if data is nil, both are made to fit.
type pk struct {
	typ                  uint32
	src, dest            int
	len                  uint32
	srqid, drqid, msglen uint64
	lsrank, tag          int32
	cid                  uint64
	reserved             uint64
	data                 []byte
}

func (p pk) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, p.typ)
	b = binary.BigEndian.AppendUint32(b, p.len)
	src, dest := identity(p.src), identity(p.dest)
	if p.typ == 7 {
		src, dest = [IdentitySize]byte{}, [IdentitySize]byte{}
	}
	b = append(append(b, src[:]...), dest[:]...)
	for _, v := range []uint64{p.srqid, p.drqid, p.msglen} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(p.lsrank))
	b = binary.BigEndian.AppendUint32(b, uint32(p.tag))
	for _, v := range []uint64{p.cid, 0, 0, 0, p.reserved} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	if p.data == nil && p.typ <= 1 {
		for i := range p.len {
			b = append(b, byte(p.srqid)+byte(i))
		}
	}
	return append(b, p.data...)
}

// msg is a short message of n bytes.
func msg(src, dest, n int) pk {
	return pk{src: src, dest: dest, len: uint32(n), msglen: uint64(n), lsrank: int32(src), tag: 5}
}

// sync is the first packet of a synchronous or long message of n bytes.
func sync(src, dest int, srqid uint64, n int) pk {
	p := msg(src, dest, min(n, testDatalen))
	p.typ, p.srqid, p.msglen = 1, srqid, uint64(n)
	return p
}

// more is a continuation packet of sync with k of its bytes.
func more(first pk, drqid uint64, k int) pk {
	first.typ, first.drqid, first.len = 0, drqid, uint32(k)
	return first
}

// reply is a packet without data.
func reply(typ uint32, src, dest int, srqid, drqid uint64) pk {
	return pk{typ: typ, src: src, dest: dest, srqid: srqid, drqid: drqid}
}

func ack(src, dest int) pk                  { return reply(2, src, dest, 0, 0) }
func syncAck(src, dest int, s, d uint64) pk { return reply(3, src, dest, s, d) }
func cancel(src, dest int, s uint64) pk     { return reply(4, src, dest, s, 0) }
func yes(src, dest int, s uint64) pk        { return reply(5, src, dest, s, 0) }
func no(src, dest int, s uint64) pk         { return reply(6, src, dest, s, 0) }
