package play

import (
	"regexp"
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
		"member": func(p *player, w script.Words) { // one of them is over
			name, want, _ := strings.Cut(w.Rest, " -> ")
			p.check(p.begun[int(script.Number(name))], want)
		},
		"takes": func(p *player, w script.Words) {
			p.g.takes(p.proc(w.Word(0)), p.proc(w.Word(1)), int32(w.Int("tag", 0)), p.t().encode(p.elements(w)), what(w))
		},
		"gives": func(p *player, w script.Words) {
			p.g.gives(p.proc(w.Word(0)), p.proc(w.Word(1)), int32(w.Int("tag", 0)), p.t().encode(p.elements(w)))
		},
		"takes-each": func(p *player, w script.Words) { p.g.takesBoth(p.proc(w.Word(0)), int32(w.Int("tag", 0)), p.t()) },
		"agree":      func(p *player, w script.Words) { p.g.agree(script.Number(w.Word(0))) },
		"exchange": func(p *player, w script.Words) {
			p.g.exchange(int(script.Number(w.Word(0))), p.proc(w.Word(1)), p.proc(w.Word(2)))
		},
		"intercomm": func(p *player, _ script.Words) { p.joined(p.interJob()) },
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

// own is the text for the IUT's member number m.
func (p *player) own(text string, m int) string {
	v := script.Vars{"m": strconv.Itoa(m), "r": strconv.Itoa(p.g.own()[m].rank)}
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		return strconv.FormatInt(int64(script.Number(v.Expand("$"+found))), 10)
	})
}

// elements are those that a step names: values=1,-2,3 as they are; or blocks=SEED:N,..., each
// of the first N elements of a seed, or with @FIRST behind it of those from there.
func (p *player) elements(w script.Words) (all []int64) {
	for _, n := range ints(w.Named["values"]) {
		all = append(all, int64(n))
	}
	for _, block := range strings.FieldsFunc(w.Named["blocks"], func(r rune) bool { return r == ',' }) {
		block, from, _ := strings.Cut(block, "@")
		seed, n, _ := strings.Cut(block, ":")
		first := int(script.Number(or(from, "0")))
		all = append(all, p.t().values(int(script.Number(seed)), first+int(script.Number(n)))[first:]...)
	}
	return all
}
