package play

import (
	"strings"

	"github.com/openimpi/impi/internal/conformance/script"
)

// startupVerbs are the steps of startup, in which the tester is the server of a client of
// the IUT.
var startupVerbs map[string]verb

func init() {
	startupVerbs = map[string]verb{
		// A job is made; what the tester's first client submits, and what its server does, may be changed.
		"prepare": func(p *player, w script.Words) { p.j = p.newJob(setupOf(w)) },
		"submits": func(p *player, w script.Words) { p.j.clients[0].values[labelNamed(w.Word(0))] = wireValues(w.Word(1)) },
		"omits": func(p *player, w script.Words) {
			c := p.j.clients[int(script.Number(w.Word(0)))]
			c.omits = map[label]bool{}
			for _, name := range w.Plain[1:] {
				c.omits[labelNamed(name)] = true
			}
		},
		"alters": (*player).alters,
		"before": (*player).before,

		// It begins: up to some place of startup, whole, or as far as the IUT takes part in it.
		"upto": func(p *player, w script.Words) { p.upto(w.Word(0)) },
		"start": func(p *player, _ script.Words) {
			p.j.launch()
			p.j.startup()
			p.j.dance()
			p.joined(p.j)
		},
		"try-all": func(p *player, _ script.Words) { p.j.begin(); p.j.untilGone() },
		"settled": func(p *player, _ script.Words) { p.j.settle(); p.j.dance(); p.joined(p.j) },
		"quiet":   func(p *player, w script.Words) { p.j.quiet(w.Rest) },
		"whole":   func(p *player, w script.Words) { wholeJob(setupOf(w))(p.T) },

		// What the server says, and the IUT.
		"says":     func(p *player, w script.Words) { p.j.conn.record(recordOf(w.Plain)) },
		"says-raw": func(p *player, w script.Words) { p.j.conn.raw(wireValues(w.Word(0))) },
		"hangs-up": func(p *player, _ script.Words) { p.j.conn.close() },
		"hears":    func(p *player, w script.Words) { p.j.conn.expect(commandNamed(w.Word(0)), -1) },
		"refuses":  func(p *player, w script.Words) { p.j.refuses(or(w.Rest, p.Case.Expect)) },
		"is-quiet": func(p *player, w script.Words) { p.j.conn.silent(w.Rest) },
		"no-reply": func(p *player, w script.Words) { p.j.unanswered(w.Rest) },
		"no-host": func(p *player, w script.Words) {
			if c := p.j.hosts[0].listen.tryAccept(glance); c != nil {
				p.Fatalf("it connected to our host: %s", w.Rest)
			}
		},
		"fails": func(p *player, w script.Words) {
			if p.served != nil {
				p.served.run.fails(w.Rest)
			} else {
				p.j.run.fails(w.Rest)
			}
		},
	}
}

// upto starts the IUT, and plays the server until it has an answer to give: to AUTH, to
// IMPI, to a label or to DONE.
func (p *player) upto(place string) {
	j := p.j
	if place != "AUTH" && place != "IMPI" {
		j.begin()
		j.until(labelNamed(place))
		return
	}
	j.launch()
	j.connected()
	if place == "AUTH" {
		j.takeAuth()
		return
	}
	j.authenticate()
	j.conn.expect(cmdIMPI, 4)
}

// alters has the server answer a label with another mask, only the first bytes of the
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

// before has the server say something before it answers a label, or DONE.
func (p *player) before(w script.Words) {
	earlier := p.j.setup.before
	p.j.setup.before = func(c *conn, l label) {
		if earlier != nil {
			earlier(c, l)
		}
		if l == labelNamed(w.Word(0)) {
			c.record(recordOf(w.Plain[1:]))
		}
	}
}

// wholeVerbs are cases that differ in the shape of the job, and in who is the root.
var wholeVerbs = map[string]verb{
	"barrier":   func(p *player, w script.Words) { barrierAs(setupOf(w))(p.T) },
	"bcast":     func(p *player, w script.Words) { bcastAs(setupOf(w), rootOf(w), w.Int("n", 7))(p.T) },
	"reduce":    func(p *player, w script.Words) { reduceAs(setupOf(w), rootOf(w))(p.T) },
	"allreduce": func(p *player, w script.Words) { allreduceAs(setupOf(w))(p.T) },

	"submitted":    func(p *player, w script.Words) { submitted(p.T, labelNamed(w.Word(0))) },
	"disagreement": func(p *player, w script.Words) { disagreement(p.T, labelNamed(w.Word(0)), uint32(w.Int("value", 0))) },
	"authentication": func(p *player, w script.Words) {
		authentication(p.T, authOf(w.Word(0)), uint32(w.Int("picks", authNone)))
	},
	"intruder": func(p *player, w script.Words) { intruder(p.T, wireValues(w.Word(0))) },
	"typed":    func(p *player, w script.Words) { typed(p.T, kindOf(w.Word(0))) },
}

// rootOf reads root=iut.1 or root=peer.0.
func rootOf(w script.Words) func(*job) *proc {
	side, n, _ := strings.Cut(w.Named["root"], ".")
	return func(j *job) *proc { return j.nth(int(script.Number(n)), side == "iut") }
}
