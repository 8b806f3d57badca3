package play

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/conformance/script"
)

// clientVerbs are the steps between two procs: one of the IUT's, which does what it is told,
// and one of the tester's. watchVerbs are about what does not come, windows, and the end of the
// IUT.
var clientVerbs, watchVerbs map[string]verb

func init() {
	clientVerbs = map[string]verb{
		// Steps that join the job, command its program, and finish it. There are also steps for
		// parts of the end.
		"job":          func(p *player, w script.Words) { p.joined(p.join(setupOf(w))) },
		"pair":         func(p *player, w script.Words) { p.pair(w.At(0), w.At(1)) },
		"finish":       func(p *player, _ script.Words) { p.k.finish() },
		"finalize":     func(p *player, _ script.Words) { p.j.finalize() },
		"barrier-over": func(p *player, _ script.Words) { p.j.barrier() },
		"end-channels": func(p *player, _ script.Words) { p.j.finishChannels() },
		"channels-end": func(p *player, _ script.Words) { p.j.channelsEnd() },
		"takes-fini": func(p *player, _ script.Words) {
			for _, ch := range p.j.channels {
				ch.takesFini()
			}
		},
		"deserted": func(p *player, _ script.Words) { p.j.deserted() },
		"tell":     (*player).tell,
		"begin":    (*player).begin,
		"done":     (*player).done,
		"pending":  func(p *player, w script.Words) { p.j.waits([]*call{p.calls[w.Word(0)]}, w.Quote) },

		// Packets.
		"to":   func(p *player, w script.Words) { m := p.message(w); p.k.give(m.packet); p.keep(m, w) },
		"raw":  func(p *player, w script.Words) { p.k.sends(p.message(w).packet) },
		"from": (*player).from,
		"hold": func(p *player, w script.Words) { p.held = append(p.held, p.message(w).packet) },
		"chop": func(p *player, w script.Words) { // the held bytes, in pieces of a given size
			p.k.ch.chopped(w.At(0), p.held...)
			p.held = nil
		},
		"cross": func(p *player, w script.Words) { // the rest of a message of the tester, and one of the IUT
			ours, theirs := p.said[w.Word(0)], p.said[w.Word(1)]
			p.k.crossing(ours.packet, w.Number("drqid", 0), ours.data, func() { p.rests(theirs, w.Number("theirs", 0)) })
		},
		"stream":    (*player).stream,
		"piece":     (*player).piece,
		"syncack":   (*player).syncack,
		"rest":      (*player).rest,
		"complete":  func(p *player, w script.Words) { p.complete(p.said[w.Word(0)], what(w)) },
		"accept":    (*player).accept,
		"rests":     func(p *player, w script.Words) { p.rests(p.said[w.Word(0)], w.Number("drqid", 0)) },
		"continues": (*player).continues,
		"cancel":    (*player).cancel,
		"asked":     func(p *player, w script.Words) { p.k.asked(p.said[w.Word(0)].packet, w.Int("req", 0)) },
	}
}

func init() {
	watchVerbs = map[string]verb{
		// No unexpected message comes.
		"idle":  func(p *player, w script.Words) { p.k.idle(w.Rest) },
		"still": func(p *player, w script.Words) { p.k.ch.still(w.Rest) },
		"stays": func(p *player, w script.Words) {
			for _, ch := range p.j.channels {
				ch.stays(w.Rest)
			}
		},
		"intact": func(p *player, w script.Words) {
			if err := p.k.ch.failure(); err != nil {
				p.Fatalf("%s: %s: %s", p.k.ch.c.name, ending(err), w.Rest)
			}
		},
		"settle": func(p *player, _ script.Words) { p.k.ch.settle() },
		// told gives the program time for all its commands. A program whose replies wait for a
		// window has only a moment.
		"told": func(p *player, _ script.Words) { closes(p.k.begin("ping").done, while) },
		"within": func(p *player, w script.Words) {
			if v := script.Number(w.Word(1)); v < script.Number(w.Word(0)) || v > script.Number(w.Word(2)) {
				p.Fatalf("%s is %d, not from %s to %s", w.Quote, v, w.Word(0), w.Word(2))
			}
		},
		"distinct": distinct,

		// Windows.
		"manual":  func(p *player, _ script.Words) { p.k.ch.handle() },
		"acks":    func(p *player, _ script.Words) { p.k.acks() },
		"release": func(p *player, _ script.Words) { p.j.release() },
		"refused": func(p *player, w script.Words) {
			no := p.k.refused(what(w))
			equal(p.T, "pk_srqid of the CANCELNO", no.srqid, w.Number("srqid", no.srqid))
		},
		"answers": takeAnswers,
		"acked": func(p *player, w script.Words) { // a number of PROTOACKs, including those among answers
			for ; p.acked < w.At(0); p.acked++ {
				p.k.take(pkProtoAck, what(w))
			}
		},

		// Packets between these two steps must make the IUT end.
		"ready": func(p *player, _ script.Words) { p.k.tell("ping"); p.words = p.j.run.words.Load() },
		"dies":  (*player).dies,
		"cut": func(p *player, w script.Words) { // a packet with 50 bytes of data, cut off with the channel
			p.k.ch.cut(p.k.out(5, bytesOf(1, 50)), w.At(0))
		},
		"close-channel": func(p *player, _ script.Words) { p.k.ch.c.close() },
		"reset-channel": func(p *player, _ script.Words) { p.k.ch.c.reset() },
	}
}

// joined makes j the job that the steps are about.
func (p *player) joined(j *job) {
	p.j = j
	for name, v := range map[string]any{"datalen": j.datalen, "tagub": j.tagub, "ackmark": j.ackmark, "hiwater": j.hiwater, "procs": len(j.procs)} {
		p.vars[name] = fmt.Sprint(v)
	}
	p.g = j.world()
	p.pair(0, 0)
}

func (p *player) pair(iut, peer int) {
	p.k = p.j.pairOf(p.j.iut(iut), p.j.peer(peer))
	p.vars["peer"] = fmt.Sprint(p.k.p.rank)
}

// tell gives a command and, if something follows an arrow, checks the reply.
func (p *player) tell(w script.Words) {
	command, want, _ := strings.Cut(w.Rest, " -> ")
	p.check(p.k.begin("%s", command), want)
}

// begin gives a command and names the call; done waits for the reply.
func (p *player) begin(w script.Words) {
	name, command, _ := strings.Cut(w.Rest, " ")
	p.calls[name] = p.k.begin("%s", command)
}

func (p *player) done(w script.Words) {
	name, want, _ := strings.Cut(w.Rest, " -> ")
	p.check(p.calls[name], want)
}

// check waits for a reply, which has to be what want says: an error, the status and data of a
// receive, data of some type, or named values.
func (p *player) check(c *call, want string) {
	if want == "error" {
		if _, err := c.wait(); err == nil {
			p.Fatalf("the program did %q without an error", c.text)
		}
		return
	}
	a, w := c.ok(), script.Split("values "+want)
	seed, n := w.Int("seed", 0), w.Int("n", 0)
	switch w.Word(0) {
	case "received":
		a.received(p.k.p, int32(w.Int("tag", 0)), seed, n)
	case "holds":
		if all := p.elements(w); all != nil {
			a.holds(all)
		} else {
			a.holds(p.kindOf(cmp.Or(w.Named["type"], "byte")).values(seed, n))
		}
	}
	for name, value := range w.Named {
		if w.Word(0) == "" || name == "count" {
			a.is(name, value)
		}
	}
}

// fields are what a step can say of a packet, besides tag and data.
var fields = map[string]func(m *packet, v uint64){
	"srqid": func(m *packet, v uint64) { m.srqid = v }, "drqid": func(m *packet, v uint64) { m.drqid = v },
	"len": func(m *packet, v uint64) { m.len = uint32(v) }, "msglen": func(m *packet, v uint64) { m.msglen = v },
	"cid": func(m *packet, v uint64) { m.cid = v }, "lsrank": func(m *packet, v uint64) { m.lsrank = int32(v) },
	"unused":  func(m *packet, v uint64) { m.seq, m.count, m.dtype, m.reserved = v, int64(v), v, v },
	"srcpid":  func(m *packet, v uint64) { m.src.pid = int64(v) },
	"destpid": func(m *packet, v uint64) { m.dest.pid = int64(v) },
}

// message makes a message of the tester's proc. Of a DATASYNC that is longer than the data
// length it is the first packet.
func (p *player) message(w script.Words) *said {
	typ, m := typeNamed(w.Word(0)), &said{}
	m.packet = p.k.answer(typ, 0, 0)
	if typ.hasData() || typ > pkFini {
		m.data = p.dataOf(w)
		first := m.data
		if typ == pkDataSync {
			first = first[:min(len(first), w.Int("first", int(p.k.datalen)))]
		}
		m.packet = p.k.out(int32(w.Int("tag", 0)), first)
		m.typ, m.msglen, m.count = typ, uint64(len(m.data)), int64(len(m.data))
	}
	if slices.Contains(w.Plain, "spoilt") {
		m.packet = spoilt(m.packet)
	}
	for name, set := range fields {
		if w.Has(name) {
			set(&m.packet, script.Number(w.Named[name]))
		}
	}
	if slices.Contains(w.Plain, "from-itself") { // from the IUT's proc, or to the tester's
		m.src = p.k.u.id
	}
	if slices.Contains(w.Plain, "to-us") {
		m.dest = p.k.p.id
	}
	if typ == pkFini {
		m.packet = packet{typ: pkFini}
	}
	return m
}

// spoilt fills all fields that mean nothing in a packet of its type with garbage.
func spoilt(p packet) packet {
	p.len, p.msglen, p.lsrank, p.tag = 128, 128, -1, -1
	p.cid, p.seq, p.count, p.dtype, p.reserved = 73<<56, math.MaxUint64, -1, math.MaxUint64, math.MaxUint64
	return p
}

// dataOf is the data that a step names: values as wireValues reads them, elements, or n elements
// of a type and a seed.
func (p *player) dataOf(w script.Words) []byte {
	if w.Has("data") {
		return wireValues(w.Named["data"])
	}
	if all := p.elements(w); all != nil {
		return p.t().encode(all)
	}
	return p.kindOf(cmp.Or(w.Named["type"], "byte")).pattern(w.Int("seed", 0), w.Int("n", 0))
}

// isFirst checks what a step says of the first packet of a message, and gives all of the message's
// data. If the step does not say what the data are, only their number counts.
func (p *player) isFirst(m *packet, w script.Words, cid uint64, lsrank int) []byte {
	data, what := p.dataOf(w), what(w)
	n := min(len(data), int(p.j.datalen))
	p.j.isMessage(m, int32(w.Int("tag", 0)), w.Number("cid", cid), w.Int("lsrank", lsrank), len(data), what)
	equal(p.T, "pk_len of "+what, int(m.len), n)
	if !w.Has("n") || w.Has("seed") {
		p.j.hasData(m, data[:n], what)
	}
	return data
}

// from takes a packet, and checks what the step says of it: of the first packet of a message
// everything; of a bare one, that all fields but its proc and request IDs are 0.
func (p *player) from(w script.Words) {
	k, what := p.k, what(w)
	m := &said{packet: k.take(typeNamed(w.Word(0)), what)}
	if w.Has("n") || w.Has("data") {
		m.data = p.isFirst(&m.packet, w, worldCID, k.u.rank)
	}
	if slices.Contains(w.Plain, "bare") {
		bare := packet{typ: m.typ, src: m.src, dest: m.dest, srqid: m.srqid, drqid: m.drqid}
		equal(p.T, what, fmt.Sprintf("%x", m.header()), fmt.Sprintf("%x", bare.header()))
	}
	for name, v := range map[string]uint64{"srqid": m.srqid, "drqid": m.drqid, "reserved": m.reserved} {
		equal(p.T, "pk_"+name+" of "+what, v, w.Number(name, v))
	}
	p.keep(m, w)
}

func (p *player) piece(w script.Words) {
	m, at := p.said[w.Word(0)], w.Int("at", 0)
	next := piece(m.packet, w.Number("drqid", 0), m.data[at:min(at+w.Int("n", 0), len(m.data))])
	if w.Word(1) == "raw" {
		p.k.sends(next)
		return
	}
	p.k.give(next)
}

func (p *player) syncack(w script.Words) {
	p.keep(&said{packet: p.k.syncAcked(p.said[w.Word(0)].packet, "the message")}, w)
}

// rest sends what follows the first packet of a message whose SYNCACK has come.
func (p *player) rest(w script.Words) {
	m := p.said[w.Word(0)]
	p.k.rest(m.packet, w.Number("drqid", 0), m.data)
}

// complete does what syncack and rest do.
func (p *player) complete(m *said, what string) {
	p.k.rest(m.packet, p.k.syncAcked(m.packet, what).drqid, m.data)
}

// accept sends the SYNCACK of a message of the IUT, and takes what follows its first packet.
func (p *player) accept(w script.Words) {
	m, drqid := p.said[w.Word(0)], w.Number("drqid", 0)
	p.k.give(p.k.answer(pkSyncAck, m.srqid, drqid))
	p.rests(m, drqid)
}

func (p *player) rests(m *said, drqid uint64) { p.k.rests(m.packet, drqid, m.data, "the message") }

func (p *player) continues(w script.Words) {
	m, at := p.said[w.Word(0)], w.Int("at", 0)
	next := p.k.take(pkData, "a continuation")
	p.k.continues(&next, &m.packet, w.Number("drqid", 0), "the message")
	p.k.hasData(&next, m.data[at:min(at+int(p.k.datalen), len(m.data))], "a continuation")
}

// cancel sends a CANCEL, and has the answer be of the type behind the arrow; $answer is which it
// is.
func (p *player) cancel(w script.Words) {
	got := p.k.cancels(w.Number("srqid", 0))
	p.vars["answer"] = got.String()
	if i := slices.Index(w.Plain, "->"); i >= 0 {
		equal(p.T, "the answer to CANCEL", got, typeNamed(w.Word(i+1)))
	}
}

func distinct(p *player, w script.Words) {
	ids := map[uint64]bool{}
	for _, name := range w.Plain {
		id := p.said[name].srqid
		if ids[id] {
			p.Fatalf("pk_srqid %d is that of another message that is not finished", id)
		}
		ids[id] = true
	}
}

// takeAnswers takes a number of SYNCACKs and CANCELNOs, and counts the PROTOACKs among them.
func takeAnswers(p *player, w script.Words) {
	for n := script.Number(w.Word(0)); n > 0; {
		switch next := p.k.ch.next("SYNCACK, CANCELNO or PROTOACK"); next.typ {
		case pkSyncAck, pkCancelNo:
			n--
		case pkProtoAck:
			p.acked++
		default:
			p.Fatalf("%s: %v came where SYNCACKs, CANCELNOs and PROTOACKs should be", p.k.ch.c.name, &next)
		}
	}
}

// dies checks that the IUT ends by itself and not by a signal, with a status other than 0 and a
// message.
func (p *player) dies(script.Words) {
	p.j.run.fails("its peer has broken the protocol")
	if p.j.run.words.Load() == p.words {
		p.Fatalf("the IUT has ended without a word about the reason")
	}
}
