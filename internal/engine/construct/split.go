package construct

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Split makes a communicator of the members with the same color, ordered by key and then by rank
// (MPI-4.1, 7.4.2). A member whose color is Undefined gets nil.
func Split(c *proc.Comm, color, key int) (*proc.Comm, error) { return splitFor(c, color, key, "Split") }

// splitFor is Split for a call of another name, which is in the error if members call different
// ones.
func splitFor(c *proc.Comm, color, key int, call string) (*proc.Comm, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	if err := collective.CheckConstructor(c, call); err != nil {
		return nil, err
	}
	bad := checkChoice(color, key)
	p := c.Process()
	onBoard := near(c)
	p.Lock()
	defer p.Unlock()
	if !AllRunImpi(c) {
		p.Unlock()
		defer p.Lock()
		return splitForeign(c, color, key, bad)
	}
	if bad != nil {
		color, key = proc.Undefined, 0
	}
	choice := comm.Choice{Color: int32(color), Key: int32(key)}
	if onBoard {
		return splitNear(c, choice, bad)
	}
	return splitOurs(c, choice, bad)
}

func checkChoice(color, key int) error {
	switch {
	case color < 0 && color != proc.Undefined || color != int(int32(color)):
		return fmt.Errorf("%w: colour %d", proc.ErrArg, color)
	case key != int(int32(key)):
		return fmt.Errorf("%w: key %d", proc.ErrArg, key)
	}
	return nil
}

// splitOurs sends all choices up a tree to the leaders, and to each member its own part down the
// tree. Few members of one client send the choices to each other instead, while they agree on the
// context: this takes fewer messages one after the other.
func splitOurs(c *proc.Comm, choice comm.Choice, bad error) (*proc.Comm, error) {
	seq := c.Ordinal()
	if x := Agreement(c, seq); !c.Wide() && x.disseminates() {
		return splitAgreed(c, x, choice, bad)
	}
	return partition(c, seq, collective.ConstructorSplit, bad, choice.Append(nil), func(a *assembly, words []byte) comm.Partition {
		choices := make([]comm.Choice, a.c.Size())
		for position := range choices {
			choices[a.tree.Rank(position)] = comm.ReadChoice(words[position*comm.ChoiceSize:])
		}
		return comm.Divide(choices)
	})
}

// splitAgreed splits an intracommunicator by an agreement whose members tell each other their
// choices.
func splitAgreed(c *proc.Comm, x *agreement, choice comm.Choice, bad error) (*proc.Comm, error) {
	x.words = choice.Append(make([]byte, 0, 2*x.size*comm.ChoiceSize))
	x.Propose(collective.ConstructorSplit, bad, func() {})
	x.Wait()
	context, err := x.Conclude(comm.IntraContexts, bad)
	if err != nil {
		return nil, err
	}
	choices := make([]comm.Choice, x.size)
	for before := range choices {
		choices[(c.Rank()-before+x.size)%x.size] = comm.ReadChoice(x.words[before*comm.ChoiceSize:])
	}
	return chosen(c, choices, context)
}

// fewChoices is up to how many members the choices need no allocation.
const fewChoices = 16

func splitNear(c *proc.Comm, choice comm.Choice, bad error) (*proc.Comm, error) {
	var few [fewChoices]comm.Choice
	choices := few[:]
	if c.Size() > len(few) {
		choices = make([]comm.Choice, c.Size())
	}
	choices = choices[:c.Size()]
	choices[c.Rank()] = choice
	context, err := agreeNear(c, collective.ConstructorSplit, bad, choice, choices)
	if err != nil {
		return nil, err
	}
	return chosen(c, choices, context)
}

func chosen(c *proc.Comm, choices []comm.Choice, context wire.ContextID) (*proc.Comm, error) {
	part, ok := comm.PartOf(choices, c.Rank())
	if !ok {
		Release(c.Process(), context)
		return nil, nil
	}
	s, err := section(c, part)
	if err != nil {
		Release(c.Process(), context)
		return nil, err
	}
	return NewInheriting(c, s, context)
}

// partition makes communicators of parts of c. The leader of each side finds the parts from its
// members' words, which have equal lengths. It is constructor number seq of c. The process is
// locked.
func partition(c *proc.Comm, seq, does uint32, bad error, words []byte, divide func(*assembly, []byte) comm.Partition) (*proc.Comm, error) {
	p, within, remote, n := c.Process(), c, 0, comm.IntraContexts
	if c.State().Local != nil {
		within, remote, n = c.State().Local, c.Remote().Size(), comm.InterContexts
	}
	a := Assemble(within, seq, len(words), remote)
	mine := p.Comms.Contexts.BeginAgreement(a.Leads())
	v, fault := a.Hold(comm.Proposal{ContextUse: mine, Fault: FaultCode(bad), Flags: does}, words, func(all comm.Proposal, words []byte) AssemblyResult {
		v := AssemblyResult{Proposal: all}
		if all.Fault == 0 {
			v.Parts = divide(a, words)
		}
		if c.State().Local != nil {
			meetLeader(c, seq, &v)
		}
		return v
	})
	fault = confirm(c, seq, &v, fault)
	context, err := Conclude(p, mine, v, n, bad, fault)
	if err != nil {
		return nil, err
	}
	part, ok := a.Part(v)
	if !ok {
		Release(p, context)
		return nil, nil
	}
	s, err := section(c, part)
	if err != nil {
		Release(p, context)
		return nil, err
	}
	return NewInheriting(c, s, context)
}

// meetLeader exchanges results with the leader of the other side, and joins the parts of both. An
// error becomes part of the result for this side's members.
func meetLeader(c *proc.Comm, seq uint32, v *AssemblyResult) {
	t := NewExchange(c, InOrderBase, WireTag(seq))
	theirs, err := t.SwapResults(0, *v, c.Remote().Size(), 0)
	v.Proposal, v.Parts = v.Combine(theirs.Proposal), v.Parts.Join(theirs.Parts)
	v.Fault = max(v.Fault, FaultCode(err))
}

func section(c *proc.Comm, part comm.Part) (s comm.Spec, err error) {
	if s.Group, err = c.Comm.Group().Select(part.Group); err != nil {
		return s, err
	}
	if s.Group == c.Comm.Group() {
		s.Masters = c.Masters()
	}
	if c.State().Local != nil {
		s.Remote, err = c.Remote().Select(part.Remote)
	}
	return s, err
}

// splitForeign splits an intracommunicator some of whose members run another MPI. Those cannot be
// told of a wrong argument, so a member with one takes part without a colour.
func splitForeign(c *proc.Comm, color, key int, bad error) (*proc.Comm, error) {
	if c.State().Local != nil {
		return nil, errors.Join(bad, proc.ForeignError("Split"))
	}
	if bad != nil {
		color, key = proc.Undefined, 0
	}
	// IMPI ch.4, Comm_split: (colour, key) as two MPI_INT; no colour is -1.
	all := make([]int32, 2*c.Size())
	all[2*c.Rank()], all[2*c.Rank()+1] = int32(max(color, -1)), int32(key)
	if err := collective.AllgatherSlices(c, nil, all); err != nil {
		return nil, err
	}
	var ranks []int
	for r := range c.Size() {
		if color >= 0 && all[2*r] == int32(color) {
			ranks = append(ranks, r)
		}
	}
	if color < 0 {
		d, err := Derive(c, comm.Spec{}, nil)
		return d, errors.Join(bad, err)
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	group, err := c.Comm.Group().Incl(ranks)
	if err != nil {
		return nil, err
	}
	return Derive(c, comm.Spec{Group: group}, nil)
}
