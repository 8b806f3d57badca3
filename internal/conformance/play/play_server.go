package play

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/conformance/script"
)

// serverVerbs are the steps against a server of the IUT. The first word says which of its
// clients, which the tester plays: their ranks with commas, or * for all.
var serverVerbs map[string]verb

func init() {
	serverVerbs = map[string]verb{
		"serve":   func(p *player, w script.Words) { p.serves(w) },
		"clients": func(p *player, w script.Words) { p.serves(w); p.all() },
		"join":    func(p *player, _ script.Words) { p.all() },
		"connect": func(p *player, w script.Words) {
			for _, rank := range ints(w.Word(0)) {
				p.members[rank] = p.served.connect(rank)
			}
		},
		"alive": func(p *player, w script.Words) { p.served.run.alive(w.Rest) },
		"ends":  func(p *player, _ script.Words) { p.served.run.succeeds() },
		"end":   func(p *player, w script.Words) { p.served.end(p.chosen(cmp.Or(w.Word(0), "*"))) },
		"unanswered": func(p *player, w script.Words) {
			ms, why := p.chosen(w.Word(0)), after(w)
			conns := make([]*conn, len(ms))
			for i, m := range ms {
				conns[i] = m.conn
			}
			unanswered(why, conns...)
		},

		// A client's messages: AUTH, its key, IMPI, any record, bytes, or nothing more.
		"auth": forAll(func(m *member, w script.Words) {
			equal(m.t, "the mechanism", int(m.auth(uint32(w.Int("mask", 1<<authNone)))), w.Int("picks", authNone))
		}),
		"key":   forAll(func(m *member, w script.Words) { m.send("a key", u64(w.Number("key", aKey))) }),
		"rank":  forAll(func(m *member, w script.Words) { m.joins(w.Int("as", m.rank)) }),
		"send":  forAll(func(m *member, w script.Words) { m.record(recordOf(w.Plain[1:])) }),
		"bytes": forAll(func(m *member, w script.Words) { m.raw(wireValues(w.Word(1))) }),
		"chops": forAll(func(m *member, w script.Words) { // one byte at a time
			m.t.trace.add("-> %s: %s, byte by byte", m.name, w.Word(1))
			m.t.must(inPieces(m.tcp, wireValues(w.Word(1)), 1))
		}),
		"try": forAll(func(m *member, w script.Words) { // the server may have closed the connection
			r := recordOf(w.Plain[1:])
			_ = m.trySend(r.String(), r.bytes())
		}),
		"collect": forAll(func(m *member, w script.Words) { m.held = append(m.held, recordOf(w.Plain[1:]).bytes()...) }),
		"flush": forAll(func(m *member, w script.Words) { // collected bytes, in one piece
			m.send(after(w), m.held)
			m.held = nil
		}),
		"close": forAll(func(m *member, _ script.Words) { m.close() }),
		"reset": forAll(func(m *member, _ script.Words) { m.reset() }),

		// The server's messages.
		"size": forAll(func(m *member, _ script.Words) { m.takesSize(m.s.n) }),
		"gets": forAll(func(m *member, w script.Words) {
			m.takes(labelNamed(w.Word(1)), uint32(w.Int("mask", 0)), wireValues(w.Word(2)))
		}),
		"picked": forAll(func(m *member, w script.Words) {
			equal(m.t, "the mechanism", int(uint32s(m.read(8, "the answer to AUTH"))[0]), w.Int("picks", authNone))
		}),
		"finis":  forAll(func(m *member, _ script.Words) { m.takesDone() }),
		"silent": forAll(func(m *member, w script.Words) { m.silent(after(w)) }),
		"closed": forAll(func(m *member, w script.Words) { m.closed(after(w)) }),
		"ended": forAll(func(m *member, w script.Words) {
			if r := m.closed(after(w)); len(r.data) > 0 {
				m.t.Fatalf("%s: %s came: %s", m.name, shortHex(r.data), after(w))
			}
		}),
	}
}

func forAll(do func(m *member, w script.Words)) verb {
	return func(p *player, w script.Words) {
		for _, m := range p.chosen(w.Word(0)) {
			do(m, w)
		}
	}
}

func (p *player) chosen(word string) (all []*member) {
	ranks := ints(strings.TrimSuffix(word, "*"))
	if word == "*" {
		ranks = slices.Sorted(maps.Keys(p.members))
	}
	for _, rank := range ranks {
		all = append(all, p.members[rank])
	}
	return all
}

func (p *player) serves(w script.Words) {
	p.served = p.serve(w.At(0), authOf(cmp.Or(w.Word(1), "none")))
	p.members = map[int]*member{}
}

// all joins all clients, up to the answer to IMPI.
func (p *player) all() {
	for i, m := range p.served.join() {
		p.members[i] = m
	}
}

// after is what follows the first word.
func after(w script.Words) string {
	_, rest, _ := strings.Cut(w.Rest, " ")
	return rest
}
