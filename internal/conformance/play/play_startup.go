package play

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/openimpi/impi/internal/conformance/script"
)

// startupVerbs are the steps of startup, in which the tester is the server of a client of
// the IUT.
var startupVerbs map[string]verb

func init() {
	startupVerbs = map[string]verb{
		// A job is made; the values of the tester's first client, and the server's actions, may be
		// changed.
		"prepare": func(p *player, w script.Words) { p.j = p.newJob(setupOf(w)) },
		"submits": (*player).submits,
		"omits": func(p *player, w script.Words) {
			c := p.j.clients[w.At(0)]
			c.omits = map[label]bool{}
			for _, name := range w.Plain[1:] {
				c.omits[labelNamed(name)] = true
			}
		},
		"alters": (*player).alters,
		"before": func(p *player, w script.Words) { // the server sends data before it answers a label, or DONE
			p.hook(func(c *conn, l label) {
				if l == labelNamed(w.Word(0)) {
					c.record(recordOf(w.Plain[1:]))
				}
			})
		},
		"in-order": (*player).inOrder,

		// The startup begins: up to some point, whole, or as far as the IUT takes part in it.
		"upto": (*player).upto,
		"start": func(p *player, _ script.Words) {
			p.j.launch()
			p.j.startup()
			p.j.dance()
			p.joined(p.j)
		},
		"try-all": func(p *player, _ script.Words) { p.j.begin(); p.j.untilGone() },
		"settled": func(p *player, _ script.Words) { p.j.settle(); p.j.dance(); p.joined(p.j) },
		"quiet":   func(p *player, w script.Words) { p.j.quiet(w.Rest) },

		// The messages of the server, and of the IUT.
		"says":      func(p *player, w script.Words) { p.j.conn.record(recordOf(w.Plain)) },
		"says-raw":  func(p *player, w script.Words) { p.j.conn.raw(wireValues(w.Word(0))) },
		"hangs-up":  func(p *player, _ script.Words) { p.j.conn.close() },
		"hears":     func(p *player, w script.Words) { p.j.conn.expect(commandNamed(w.Word(0)), -1) },
		"refuses":   func(p *player, w script.Words) { p.j.refuses(cmp.Or(w.Rest, p.Case.Expect)) },
		"is-quiet":  func(p *player, w script.Words) { p.j.conn.silent(w.Rest) },
		"no-reply":  func(p *player, w script.Words) { p.j.unanswered(w.Rest) },
		"hears-key": func(p *player, _ script.Words) { equal(p.T, "the key", p.j.takeKey(), uint64(aKey)) },
		"ranked":    func(p *player, _ script.Words) { p.j.rank() },
		"fails": func(p *player, w script.Words) {
			if p.served != nil {
				p.served.run.fails(w.Rest)
			} else {
				p.j.run.fails(w.Rest)
			}
		},

		// The values that the IUT has submitted. After upto, 4-byte numbers are also $LABEL.
		"values": (*player).values,
		"unlike": func(p *player, w script.Words) {
			if v := w.Int("value", 0); int32(uint32s(p.j.self.values[labelNamed(w.Word(0))])[0]) == int32(v) {
				p.Skipf("the client's own value is %d", v)
			}
		},
		"known": func(p *player, _ script.Words) { p.j.identify() },
		"listens": func(p *player, _ script.Words) { // the last client may have no port, as no host connects to it
			h, values := p.j.self.hosts[0], p.j.self.values
			copy(h.id[:], values[hIPv6])
			if h.port = uint16(uint32s(values[hPort])[0]); h.port != 0 {
				p.j.connect(p.j.hosts[0], h)
			}
		},
	}
}

// aKey has different bytes, and is not negative if it is read as a signed number.
const aKey = 0x0102030405060708

// submits changes what a client of the tester submits: the first client, unless of= names another.
// Its procs get the identities that it submits.
func (p *player) submits(w script.Words) {
	c, l := p.j.clients[w.Int("of", 0)], labelNamed(w.Word(0))
	c.values[l] = wireValues(w.Word(1))
	if n := len(c.procs()); len(c.values[pIPv6]) == 16*n && len(c.values[pPID]) == 8*n {
		c.identify(c.values[pIPv6], c.values[pPID])
	}
}

// upto starts the IUT, and plays the server until it has an answer to give: to AUTH, to
// IMPI, to a label or to DONE.
func (p *player) upto(w script.Words) {
	j, place := p.j, w.Word(0)
	if place != "AUTH" && place != "IMPI" {
		j.begin()
		j.until(labelNamed(place))
		for l, v := range j.self.values {
			if len(v) == 4 {
				p.vars[l.String()] = fmt.Sprint(uint32s(v)[0])
			}
		}
		return
	}
	j.launch()
	j.connected()
	if place == "AUTH" {
		mask := j.takeAuth()
		equal(p.T, "the mask of AUTH", mask, uint32(w.Int("mask", int(mask))))
		return
	}
	j.authenticate()
	j.conn.expect(cmdIMPI, 4)
}

// alters makes the server answer a label with another mask, only the first bytes of the
// values, or one value more.
func (p *player) alters(w script.Words) {
	p.j.setup.answers = func(l label, mask uint32, v []byte) (uint32, []byte) {
		if l != labelNamed(w.Word(0)) {
			return mask, v
		}
		v = append(v[:w.Int("cut", len(v))], wireValues(w.Named["add"])...)
		return uint32(w.Int("mask", int(mask))), v
	}
}

// hook adds to what the server does before it answers a label, or DONE.
func (p *player) hook(f func(c *conn, l label)) {
	earlier := p.j.setup.before
	p.j.setup.before = func(c *conn, l label) {
		if earlier != nil {
			earlier(c, l)
		}
		f(c, l)
	}
}

// inOrder checks that labels ascend, and that nothing comes before those that are named are
// answered.
func (p *player) inOrder(w script.Words) {
	var before label
	p.hook(func(c *conn, l label) {
		if l != 0 && l <= before {
			p.Fatalf("%v comes after %v", l, before)
		}
		before = l
		if slices.Contains(w.Plain, l.String()) {
			c.silent(l.String() + " has not been answered")
		}
	})
}

// values checks what the IUT has submitted for a label, by the arguments of the step: n numbers,
// each of width bytes and from least to most; their sum; has, a number that must be among them; and
// whether they are signed, or have to ascend.
func (p *player) values(w script.Words) {
	l, width := labelNamed(w.Word(0)), w.Int("width", 4)
	rest := p.j.self.values[l]
	if n := w.Int("n", len(rest)/width); n == 0 || len(rest) != n*width {
		p.Fatalf("%v has %d bytes, not %d numbers of %d", l, len(rest), max(1, n), width)
	}
	least, most, sum, found := int64(w.Number("least", 1<<63)), int64(w.Number("most", math.MaxInt64)), int64(0), !w.Has("has")
	for before := int64(-1); width <= 8 && len(rest) > 0; rest = rest[width:] {
		v := int64(binary.BigEndian.Uint64(append(make([]byte, 8-width), rest[:width]...)))
		if slices.Contains(w.Plain, "signed") {
			v = int64(int32(v))
		}
		switch {
		case v < least:
			p.Fatalf("%v: %d is below %d", l, v, least)
		case v > most:
			p.Fatalf("%v: %d is above %d", l, v, most)
		case slices.Contains(w.Plain, "ascend") && before >= 0 && uint64(v) <= uint64(before):
			p.Fatalf("%v: they do not ascend", l)
		}
		before, sum, found = v, sum+v, found || v == int64(w.Number("has", 0))
	}
	if !found {
		p.Fatalf("%v: %s is not among them", l, w.Named["has"])
	}
	equal(p.T, "the sum of "+l.String(), sum, int64(w.Number("sum", uint64(sum))))
}
