package play

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/conformance/script"
)

// groupVerbs are the steps of collective operations, and of making communicators. Procs are
// called by their world ranks. All members of the IUT begin an operation at once; in their
// commands and replies {expression} stands for a number that is each one's own, by its world
// rank r and its place m among them.
var groupVerbs map[string]verb

func init() {
	groupVerbs = map[string]verb{
		"world": func(p *player, _ script.Words) { p.g = p.j.world() },
		"group": func(p *player, w script.Words) { p.g = p.groupOf(w) },
		"all": func(p *player, w script.Words) {
			p.begun = p.g.all(func(m int) string { return p.own(w.Rest, m) })
		},
		"over": func(p *player, w script.Words) {
			for m, c := range p.begun {
				p.check(c, p.own(strings.TrimPrefix(w.Rest, "-> "), m))
			}
		},
		"member": func(p *player, w script.Words) { // one member is over
			name, want, _ := strings.Cut(w.Rest, " -> ")
			p.check(p.begun[int(script.Number(name))], want)
		},
		"takes": func(p *player, w script.Words) {
			p.g.takes(p.proc(w.Word(0)), p.proc(w.Word(1)), int32(w.Int("tag", 0)), p.dataOf(w), what(w))
		},
		"gives": func(p *player, w script.Words) {
			p.g.gives(p.proc(w.Word(0)), p.proc(w.Word(1)), int32(w.Int("tag", 0)), p.dataOf(w))
		},
		"expects": func(p *player, w script.Words) { p.expected = append(p.expected, w) },
		"arrive":  (*player).arrive,
		"agree": func(p *player, w script.Words) { // $agreed is the last ID that the IUT has sent
			p.vars["agreed"] = strconv.FormatUint(p.g.agree(script.Number(w.Word(0))), 10)
		},
		"exchange": func(p *player, w script.Words) {
			p.g.exchange(w.At(0), p.proc(w.Word(1)), p.proc(w.Word(2)))
		},

		// Operations whose messages follow the trees of the standard.
		"barrier": whole(func(p *player, _ script.Words) { p.g.barriers() }),
		"bcast": whole(func(p *player, w script.Words) {
			for _, seed := range []int{5, 6} {
				p.g.bcast(p.rootOf(w), seed, w.Int("n", 7))
			}
		}),
		"reduce":    whole(func(p *player, w script.Words) { p.g.reduce(p.rootOf(w)) }),
		"allreduce": whole(func(p *player, _ script.Words) { p.g.allreduce() }),
	}
}

// whole makes a step that is a whole case: an operation in a job of its own.
func whole(operation verb) verb {
	return func(p *player, w script.Words) {
		p.joined(p.join(setupOf(w)))
		operation(p, w)
		p.j.quiet("the operation is over")
		p.j.finish()
	}
}

func (p *player) rootOf(w script.Words) *proc {
	side, n, _ := strings.Cut(w.Named["root"], ".")
	return p.j.nth(int(script.Number(n)), side == "iut")
}

// arrive takes the messages that are expected, of one packet each, in whatever order they come.
func (p *player) arrive(w script.Words) {
	for len(p.expected) > 0 {
		ch := p.j.channelOf(p.proc(p.expected[0].Word(0)), p.proc(p.expected[0].Word(1)))
		next := ch.expect(pkData, what(w))
		i := slices.IndexFunc(p.expected, func(w script.Words) bool {
			return p.proc(w.Word(0)).id == next.src && p.proc(w.Word(1)).id == next.dest
		})
		if i < 0 {
			p.Fatalf("%s: %v came, and %d other messages did not: %s", ch.c.name, &next, len(p.expected), what(w))
		}
		p.isFirst(&next, p.expected[i], p.g.cid, p.g.rank(p.proc(p.expected[i].Word(0))))
		p.keep(&said{packet: next}, p.expected[i])
		p.expected = slices.Delete(p.expected, i, i+1)
	}
}

// groupOf is a communicator, whose collectives have the ID cid, of all procs or some.
func (p *player) groupOf(w script.Words) *group {
	members := p.j.procs
	if w.Has("ranks") {
		members = nil
		for _, rank := range ints(w.Named["ranks"]) {
			members = append(members, p.j.procs[rank])
		}
	}
	return p.j.group(w.Number("cid", worldColl), members)
}

// proc is that of a world rank, t the type of all elements here.
func (p *player) proc(rank string) *proc { return p.j.procs[int(script.Number(rank))] }
func (p *player) t() kind                { return p.kindOf("int") }

var braces = regexp.MustCompile(`\{([^}]*)\}`)

// own returns text for the IUT's member number m: expressions in braces are replaced by their
// values.
func (p *player) own(text string, m int) string {
	v := script.Vars{"m": strconv.Itoa(m), "r": strconv.Itoa(p.g.own()[m].rank)}
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		return strconv.FormatInt(int64(script.Number(v.Expand("$"+found))), 10)
	})
}

// elements are those that a step names: values=1,-2,3 as they are; or blocks=SEED:N,..., each
// of the first N elements of a seed, or with @FIRST behind it of those from there; with +SEED the
// elements of that seed are added.
func (p *player) elements(w script.Words) (all []int64) {
	for _, n := range ints(w.Named["values"]) {
		all = append(all, int64(n))
	}
	for _, block := range strings.FieldsFunc(w.Named["blocks"], func(r rune) bool { return r == ',' }) {
		block, from, _ := strings.Cut(block, "@")
		seeds, n, _ := strings.Cut(block, ":")
		first := int(script.Number(cmp.Or(from, "0")))
		sum := make([]int64, script.Number(n))
		for _, seed := range strings.Split(seeds, "+") {
			for i := range sum {
				sum[i] += p.t().value(int(script.Number(seed)), first+i)
			}
		}
		all = append(all, sum...)
	}
	return all
}
