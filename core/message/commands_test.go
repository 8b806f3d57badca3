package message

import (
	"errors"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/openimpi/impi/core/wire"
)

var commands = map[string]func(*job, *datadriven.TestData){
	"job":      (*job).cmdJob,
	"send":     (*job).cmdSend,
	"recv":     (*job).cmdRecv,
	"probe":    (*job).cmdProbe,
	"take":     (*job).cmdTake,
	"recvmsg":  (*job).cmdRecvMessage,
	"cancel":   (*job).cmdCancel,
	"release":  (*job).cmdRelease,
	"deliver":  (*job).cmdDeliver,
	"packet":   (*job).cmdPacket,
	"route":    (*job).cmdRoute,
	"unrouted": (*job).cmdUnrouted,
	"detach":   (*job).cmdDetach,
	"down":     (*job).cmdDown,
	"attach":   (*job).cmdAttachBuffer,
	"unattach": (*job).cmdDetachBuffer,
	"counters": (*job).cmdCounters,
	"dump":     (*job).cmdDump,
	"idle":     (*job).cmdIdle,
}

// job procs=3 maxdata=4 ackmark=2 hiwater=4 script=1,2 [direct] [noroute] [draft]
//
// All traffic uses link 0, the agent's; with direct, traffic with proc p uses
// link p+1.
func (j *job) cmdJob(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	*j = job{t: j.t, byName: map[string]*tracked{}, taken: map[string]*Message{}}
	if slices.Contains(a.at, "draft") {
		j.dialect = wire.Draft
	}
	n := int(a.num("procs", 2))
	for i := range n {
		j.procs = append(j.procs, wire.Proc{Host: wire.HostID{12: 192, 14: 2, 15: 1}, PID: int64(100 + i)})
	}
	j.engines = make([]*Engine, n)
	directory, err := NewDirectory(j.procs)
	if err != nil {
		j.printf("%v", err)
		return
	}
	j.inbox = make([][]delivery, n)
	script := strings.Split(a.word("script", ""), ",")
	for i := range n {
		if slices.Contains(script, string(rune('0'+i))) {
			continue
		}
		e, err := New(Config{
			Self: Peer(i), Directory: directory, Dialect: j.dialect,
			MaxData: uint32(a.num("maxdata", 4)),
			AckMark: uint32(a.num("ackmark", 10)), HiWater: uint32(a.num("hiwater", 20)),
			StageLimit: int(a.num("stage", 0)),
			RankOf:     draftRank,
		})
		if err != nil {
			j.printf("%v", err)
			return
		}
		j.engines[i] = e
		j.links(a, i, e)
	}
	j.printf("ok")
}

// draftRank has contexts 4 and 5 be of a communicator of procs 2, 1, 0.
func draftRank(c wire.ContextID, p Peer) wire.CommRank {
	if c == 4 || c == 5 {
		return wire.CommRank(2 - p)
	}
	return wire.CommRank(p)
}

func (j *job) links(a args, self int, e *Engine) {
	e.Attach(0)
	for p := range j.procs {
		if p == self {
			continue
		}
		l := LinkID(0)
		if slices.Contains(a.at, "direct") {
			l = LinkID(p + 1)
			e.AttachPeer(l, Peer(p))
		}
		if !slices.Contains(a.at, "noroute") {
			e.SetRoute(Peer(p), l)
		}
	}
}

func (j *job) envelope(a args, rank int64) Envelope {
	return Envelope{
		Context: wire.ContextID(a.num("cid", 0)),
		Rank:    wire.CommRank(rank),
		Tag:     wire.Tag(a.num("tag", 0)),
	}
}

func (j *job) track(a args, e *Engine, r *Request, buf []byte) {
	q := &tracked{name: a.word("id", "request"), e: e, r: r, buf: buf}
	j.byName[q.name] = q
	j.open = append(j.open, q)
}

// send 0->1 tag=7 len=10 id=s mode=synchronous
func (j *job) cmdSend(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	from, to := a.who()
	mode := map[string]Mode{"standard": Standard, "synchronous": Synchronous, "buffered": Buffered, "ready": Ready}[a.word("mode", "standard")]
	data := alphabet(int(a.num("len", 0)))
	e := j.engines[from]
	r := e.Send(Peer(to), j.envelope(a, a.num("rank", int64(from))), mode, data, int64(len(data)), 0)
	if mode == Buffered {
		clear(data) // is the user's again
	}
	j.track(a, e, r, data)
}

// from is the only peer that src admits, or NoPeer.
func (a args) from() Peer {
	if from := Peer(a.num("from", a.num("src", 0))); from >= 0 {
		return from
	}
	return NoPeer
}

// recv 1 src=0 tag=7 len=10 id=r [from=0]
func (j *job) cmdRecv(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	at, _ := a.who()
	src := a.num("src", 0)
	from := a.from()
	buf := make([]byte, a.num("len", 100))
	e := j.engines[at]
	j.track(a, e, e.Recv(j.envelope(a, src), from, buf), buf)
}

func (j *job) printStatus(st Status, ok bool) {
	if !ok {
		j.printf("nothing")
		return
	}
	j.printf("message src=%d peer=%d tag=%d len=%d", st.Source, st.Peer, st.Tag, st.Len)
}

func (j *job) cmdProbe(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	at, _ := a.who()
	j.printStatus(j.engines[at].Probe(j.envelope(a, a.num("src", 0)), a.from()))
}

// take 1 src=any tag=any as=m
func (j *job) cmdTake(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	at, _ := a.who()
	m, st, ok := j.engines[at].Take(j.envelope(a, a.num("src", 0)), a.from())
	j.printStatus(st, ok)
	j.taken[a.word("as", "m")] = m
}

// recvmsg 1 m len=10 id=r
func (j *job) cmdRecvMessage(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	at, _ := a.who()
	buf := make([]byte, a.num("len", 100))
	e := j.engines[at]
	j.track(a, e, e.RecvMessage(j.taken[a.at[1]], buf), buf)
}

func (j *job) cmdCancel(d *datadriven.TestData) {
	q := j.byName[parseArgs(j.t, d).at[0]]
	q.e.Cancel(q.r)
}

// release r: gives the request back, whether it is done or not.
func (j *job) cmdRelease(d *datadriven.TestData) {
	q := j.byName[parseArgs(j.t, d).at[0]]
	gen := q.r.Generation()
	q.e.Release(q.r)
	j.open = slices.DeleteFunc(j.open, func(o *tracked) bool { return o == q })
	j.printf("generation %d -> %d", gen, q.r.Generation())
}

// deliver 1 [count=2]: gives proc 1 the packets that are on their way to it.
func (j *job) cmdDeliver(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	at, _ := a.who()
	in := j.inbox[at]
	n := min(int(a.num("count", int64(len(in)))), len(in))
	j.inbox[at] = in[n:]
	if j.engines[at] == nil {
		return
	}
	for _, p := range in[:n] {
		j.feed(j.engines[at], p)
	}
}

func (j *job) feed(e *Engine, p delivery) {
	for raw := p.raw; len(raw) > 0; {
		n := 0
		for _, b := range e.Input(p.link) {
			k := copy(b, raw)
			raw = raw[k:]
			n += k
		}
		if err := e.Received(p.link, n); err != nil {
			j.printf("%v", err)
			var pe *ProtocolError
			if !errors.As(err, &pe) || !errors.Is(err, ErrProtocol) {
				j.t.Error("not a *ProtocolError")
			}
			return
		}
	}
}

var typeNames = map[string]wire.PacketType{
	"DATA": wire.PkData, "DATASYNC": wire.PkDataSync, "PROTOACK": wire.PkProtoAck, "SYNCACK": wire.PkSyncAck,
	"CANCEL": wire.PkCancel, "CANCELYES": wire.PkCancelYes, "CANCELNO": wire.PkCancelNo, "FINI": wire.PkFini, "TYPE8": 8,
}

// packet 1->0 DATASYNC srqid=5 len=4 msglen=10 tag=7 [cut=2] [tail=2] [src=9] [dest=9] [link=1]
//
// It is given to the engine at once. cut leaves bytes off the end, tail takes
// only the end; src and dest
// are ranks to be named instead, -1 a proc that nobody knows.
func (j *job) cmdPacket(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	from, to := a.who()
	typ := typeNames[a.at[1]]
	n := a.num("len", 0)
	h := wire.Packet{
		Type: typ, Len: uint32(n), MsgLen: uint64(a.num("msglen", n)),
		Src: j.proc(a.num("src", int64(from))), Dest: j.proc(a.num("dest", int64(to))),
		SrcReq: a.id("srqid"), DestReq: a.id("drqid"),
		LSRank: wire.CommRank(a.num("lsrank", int64(from))), Tag: wire.Tag(a.num("tag", 0)),
		Context: wire.ContextID(a.num("cid", 0)), Count: a.num("count", 0),
	}
	raw := make([]byte, headerSize)
	j.dialect.PutHeader(raw, &h)
	if typ.HasData() && n < 1<<20 {
		at := int(a.num("at", 0))
		raw = append(raw, alphabet(at + int(n))[at:]...)
	}
	raw = raw[:len(raw)-int(a.num("cut", 0))]
	raw = raw[len(raw)-int(a.num("tail", int64(len(raw)))):]
	j.feed(j.engines[to], delivery{LinkID(a.num("link", 0)), raw})
}

func (j *job) proc(rank int64) wire.Proc {
	if rank < 0 {
		return wire.Proc{PID: 999}
	}
	return j.procs[rank]
}

func (j *job) cmdRoute(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	from, to := a.who()
	j.engines[from].SetRoute(Peer(to), LinkID(a.num("link", 0)))
}

func (j *job) cmdUnrouted(d *datadriven.TestData) {
	at, _ := parseArgs(j.t, d).who()
	for {
		p, ok := j.engines[at].Unrouted()
		if !ok {
			return
		}
		j.printf("peer %d needs a route", p)
	}
}

var errCut = errors.New("cable cut")

func (j *job) cmdDetach(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	at, _ := a.who()
	j.engines[at].Detach(LinkID(a.num("link", 0)), errCut)
}

func (j *job) cmdDown(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	at, _ := a.who()
	j.engines[at].PeerDown(Peer(a.num("peer", 0)), errors.New("it died"))
}

func (j *job) cmdAttachBuffer(d *datadriven.TestData) {
	a := parseArgs(j.t, d)
	at, _ := a.who()
	if err := j.engines[at].BufferSpace().Attach(int(a.num("size", 0))); err != nil {
		j.printf("%v", err)
	}
}

func (j *job) cmdDetachBuffer(d *datadriven.TestData) {
	at, _ := parseArgs(j.t, d).who()
	size, done := j.engines[at].BufferSpace().Detach()
	j.printf("size=%d done=%v", size, done)
}

func (j *job) cmdCounters(d *datadriven.TestData) {
	at, _ := parseArgs(j.t, d).who()
	j.printf("%+v", j.engines[at].Counters())
}

func (j *job) cmdDump(d *datadriven.TestData) {
	at, _ := parseArgs(j.t, d).who()
	j.engines[at].Dump(&j.out)
}

func (j *job) cmdIdle(d *datadriven.TestData) {
	at, _ := parseArgs(j.t, d).who()
	j.printf("%v", j.engines[at].Idle())
}
