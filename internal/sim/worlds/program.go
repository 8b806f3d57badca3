package worlds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is what an Op does.
type Kind uint8

// The kinds. All members of a communicator take part, and all procs do their parts
// of the program in its order.
const (
	Meet       Kind = iota // the members of Comm accept, those of With connect
	Dup                    // of Comm
	Idup                   // begins one
	Finish                 // waits for the Idup that makes New
	Split                  // Comm by Colors and Keys
	Merge                  // the intercommunicator Comm
	Join                   // IntercommCreate of Comm and With by Peer
	Free                   // Comm
	Disconnect             // Comm
	Talk                   // everybody with everybody, on all of Comms at a time
	Sum                    // Allreduce on Comm
	Pause                  // Comm's members compute for a while
	kinds
)

var kindNames = [kinds]string{"meet", "dup", "idup", "finish", "split", "merge", "join", "free", "disconnect", "talk", "sum", "pause"}

// String is the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Op is a step of a program. Communicators have numbers: first the worlds, then each
// proc's self, then those that the program makes; a number is never used again.
type Op struct {
	Kind           Kind
	Comm           int
	With, Peer     int   // other communicators
	Root, WithRoot int   // ranks in Comm and in With
	New            []int // the communicators that it makes; of Split by color
	Colors, Keys   []int // of Split, by rank
	High           bool  // of Merge: the first side comes last
	Comms          []int // of Talk
	Late           bool  // of Meet: who accepts takes its time
}

// String is the operation in one line.
func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", o.Kind)
	switch o.Kind {
	case Talk:
		fmt.Fprintf(&b, " on %v", o.Comms)
	case Meet:
		fmt.Fprintf(&b, ": %d accepts at %d, %d connects at %d", o.Comm, o.Root, o.With, o.WithRoot)
	case Join:
		fmt.Fprintf(&b, ": %d by %d with %d by %d, through %d", o.Comm, o.Root, o.With, o.WithRoot, o.Peer)
	default:
		fmt.Fprintf(&b, " %d", o.Comm)
	}
	if o.Kind == Split {
		fmt.Fprintf(&b, " colors %v keys %v", o.Colors, o.Keys)
	}
	if len(o.New) > 0 {
		fmt.Fprintf(&b, " makes %v", o.New)
	}
	return b.String()
}

// Program is what all procs do.
type Program struct {
	Worlds []int // procs of each
	Ops    []Op
}

// Procs is the number of procs of all worlds. They are numbered by world and rank.
func (p *Program) Procs() (n int) {
	for _, size := range p.Worlds {
		n += size
	}
	return n
}

// first is the number of a world's first proc.
func (p *Program) first(world int) (n int) {
	for _, size := range p.Worlds[:world] {
		n += size
	}
	return n
}

// worldOf is the world of a proc.
func (p *Program) worldOf(proc int) (world int) {
	for ; proc >= p.Worlds[world]; world++ {
		proc -= p.Worlds[world]
	}
	return world
}

// String is the program, a line for each step.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "worlds of %v procs\n", p.Worlds)
	for i, o := range p.Ops {
		fmt.Fprintf(&b, "%3d %v\n", i+1, o)
	}
	return b.String()
}

// group is a communicator as the model has it.
type group struct {
	number  int
	members []int // procs by rank
	remote  []int // of the other side of an intercommunicator, seen from members
}

func (g *group) inter() bool { return g.remote != nil }

// has tells whether a proc is a member, on either side.
func (g *group) has(proc int) bool {
	return slices.Contains(g.members, proc) || slices.Contains(g.remote, proc)
}

// sides gives the group as a member of it sees it: its own side and the other one.
func (g *group) sides(proc int) (own, other []int) {
	if slices.Contains(g.members, proc) {
		return g.members, g.remote
	}
	return g.remote, g.members
}

// partners are those that a member talks to, by rank.
func (g *group) partners(proc int) []int {
	own, other := g.sides(proc)
	if g.inter() {
		return other
	}
	return own
}

// all are the members of both sides.
func (g *group) all() []int { return slices.Concat(g.members, g.remote) }

// ErrProgram means that a program is none.
var ErrProgram = errors.New("worlds: not a program")

// model follows a program: which communicators there are, and were.
type model struct {
	p      *Program
	groups map[int]*group
	alive  map[int]bool
	begun  map[int]int // Idups under way: what they make, and of what
}

func newModel(p *Program) *model {
	m := &model{p: p, groups: map[int]*group{}, alive: map[int]bool{}, begun: map[int]int{}}
	for w, size := range p.Worlds {
		g := &group{number: w}
		for r := range size {
			g.members = append(g.members, p.first(w)+r)
		}
		m.add(g)
	}
	for i := range p.Procs() {
		m.add(&group{number: len(p.Worlds) + i, members: []int{i}})
	}
	return m
}

// fixed tells whether a communicator is there from the start.
func (m *model) fixed(number int) bool { return number < len(m.p.Worlds)+m.p.Procs() }

func (m *model) add(g *group) {
	m.groups[g.number] = g
	m.alive[g.number] = true
}

// apply does a step, or says why it cannot be done.
func (m *model) apply(o Op) error {
	bad := func(why string) error { return fmt.Errorf("%w: %v: %s", ErrProgram, o, why) }
	for _, n := range o.New {
		if m.groups[n] != nil && o.Kind != Finish {
			return bad("its number is taken")
		}
	}
	if o.Kind == Talk {
		for _, n := range o.Comms {
			if !m.alive[n] {
				return bad("there is no such communicator")
			}
		}
		return nil
	}
	c := m.groups[o.Comm]
	if c == nil || !m.alive[o.Comm] {
		return bad("there is no such communicator")
	}
	if why := m.change(o, c); why != "" {
		return bad(why)
	}
	return nil
}

func (m *model) change(o Op, c *group) (why string) {
	if want := o.makes(); want >= 0 && len(o.New) != want {
		return "it makes another number of communicators"
	}
	switch o.Kind {
	case Meet, Join:
		return m.couple(o, c)
	case Dup:
		m.add(&group{o.New[0], c.members, c.remote})
	case Idup:
		m.groups[o.New[0]] = &group{o.New[0], c.members, c.remote}
		m.begun[o.New[0]] = o.Comm
	case Finish:
		if from, ok := m.begun[o.New[0]]; !ok || from != o.Comm {
			return "no such Idup is under way"
		}
		delete(m.begun, o.New[0])
		m.alive[o.New[0]] = true
	case Split:
		return m.split(o, c)
	case Merge:
		if !c.inter() {
			return "it is no intercommunicator"
		}
		members := slices.Concat(c.members, c.remote)
		if o.High {
			members = slices.Concat(c.remote, c.members)
		}
		m.add(&group{number: o.New[0], members: members})
	case Free, Disconnect:
		if m.fixed(o.Comm) {
			return "it stays"
		}
		for _, from := range m.begun {
			if from == o.Comm {
				return "an Idup of it is under way"
			}
		}
		delete(m.alive, o.Comm)
	case Talk, Sum, Pause, kinds:
	}
	return ""
}

// makes is how many communicators an operation makes; negative: it depends.
func (o *Op) makes() int {
	switch o.Kind {
	case Meet, Join, Dup, Idup, Finish, Merge:
		return 1
	case Split:
		return -1
	default:
		return 0
	}
}

// couple makes an intercommunicator.
func (m *model) couple(o Op, c *group) string {
	d := m.groups[o.With]
	switch {
	case d == nil || !m.alive[o.With] || c.inter() || d.inter():
		return "there are no such intracommunicators"
	case slices.ContainsFunc(c.members, d.has):
		return "they have members in common"
	case o.Root < 0 || o.Root >= len(c.members) || o.WithRoot < 0 || o.WithRoot >= len(d.members):
		return "there is no such root"
	}
	if o.Kind == Join {
		peer := m.groups[o.Peer]
		if peer == nil || !m.alive[o.Peer] || !slices.Contains(peer.partners(c.members[o.Root]), d.members[o.WithRoot]) || !peer.has(c.members[o.Root]) {
			return "the leaders do not meet"
		}
	}
	m.add(&group{o.New[0], c.members, d.members})
	return ""
}

// split makes a communicator of each color.
func (m *model) split(o Op, c *group) string {
	if c.inter() || len(o.Colors) != len(c.members) || len(o.Keys) != len(c.members) {
		return "it cannot be split so"
	}
	for color, number := range o.New {
		var ranks []int
		for r := range c.members {
			if o.Colors[r] == color {
				ranks = append(ranks, r)
			}
		}
		if len(ranks) == 0 {
			return "nobody has one of its colors"
		}
		slices.SortStableFunc(ranks, func(a, b int) int { return o.Keys[a] - o.Keys[b] })
		g := &group{number: number}
		for _, r := range ranks {
			g.members = append(g.members, c.members[r])
		}
		m.add(g)
	}
	return ""
}
