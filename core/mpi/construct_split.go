package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/comm"
)

// Split makes one communicator for each colour that members give, of those that
// give it, ordered by key and then by rank in c. All members of c call it, of an
// intercommunicator on both sides: its members of one colour on either side are
// joined to an intercommunicator. nil is for those of the colour Undefined, and
// of one that the other side lacks.
func (c *Comm) Split(color, key int) (*Comm, error) {
	d, err := c.split(color, key)
	return d, c.failed("Split", err)
}

func (c *Comm) split(color, key int) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.announce("Split"); err != nil {
		return nil, err
	}
	bad := checkChoice(color, key)
	p := c.p
	p.lock()
	defer p.unlock()
	if !c.ours() {
		p.unlock()
		defer p.lock()
		return c.splitForeign(color, key, bad)
	}
	if bad != nil {
		color, key = Undefined, 0
	}
	return c.splitOurs(comm.Choice{Color: int32(color), Key: int32(key)}, bad)
}

func checkChoice(color, key int) error {
	switch {
	case color < 0 && color != Undefined || color != int(int32(color)):
		return fmt.Errorf("%w: colour %d", ErrArg, color)
	case key != int(int32(key)):
		return fmt.Errorf("%w: key %d", ErrArg, key)
	}
	return nil
}

// splitOurs has the leaders learn all choices, which go up a tree, and everybody
// learn its own part, which comes down it.
func (c *Comm) splitOurs(choice comm.Choice, bad error) (*Comm, error) {
	return c.partition(doesSplit, bad, choice.Append(nil), func(a *assembly, words []byte) comm.Partition {
		choices := make([]comm.Choice, a.c.Size())
		for position := range choices {
			choices[a.tree.Rank(position)] = comm.ReadChoice(words[position*comm.ChoiceSize:])
		}
		return comm.Divide(choices)
	})
}

// partition makes communicators of parts of c. The leaders of both sides, or of
// the one, find the parts from what their members say, in words of equal length.
// The process is locked.
func (c *Comm) partition(does uint32, bad error, words []byte, divide func(*assembly, []byte) comm.Partition) (*Comm, error) {
	p, within, remote, n := c.p, c, 0, comm.IntraContexts
	seq := c.ordinal()
	if c.local != nil {
		within, remote, n = c.local, c.Remote().Size(), comm.InterContexts
	}
	a := within.assemble(seq, len(words), remote)
	mine := p.contexts.Offer(a.leads())
	v, fault := a.hold(comm.Proposal{Offer: mine, Fault: faultCode(bad), Flags: does}, words, func(all comm.Proposal, words []byte) verdict {
		v := verdict{Proposal: all}
		if all.Fault == 0 {
			v.parts = divide(a, words)
		}
		if c.local != nil {
			c.meetLeader(seq, &v)
		}
		return v
	})
	fault = c.confirm(seq, &v, fault)
	context, err := p.conclude(mine, v, n, bad, fault)
	if err != nil {
		return nil, err
	}
	part, ok := a.part(v)
	if !ok {
		p.release(context)
		return nil, nil
	}
	s, err := c.section(part)
	if err != nil {
		p.release(context)
		return nil, err
	}
	return c.adopt(s, context)
}

// meetLeader exchanges verdicts with the leader of the other side, and joins the
// parts of both. What goes wrong is told to this side's members.
func (c *Comm) meetLeader(seq uint32, v *verdict) {
	t := c.talk(inOrder, wireTag(seq))
	theirs, err := t.swapVerdicts(0, *v, c.Remote().Size(), 0)
	v.Proposal, v.parts = v.With(theirs.Proposal), v.parts.Join(theirs.parts)
	v.Fault = max(v.Fault, faultCode(err))
}

// section is what a communicator of a part of c is made of.
func (c *Comm) section(part comm.Part) (s comm.Spec, err error) {
	if s.Group, err = c.Comm.Group().Select(part.Group); err != nil {
		return s, err
	}
	if s.Group == c.Comm.Group() {
		s.Masters = c.Masters()
	}
	if c.local != nil {
		s.Remote, err = c.Remote().Select(part.Remote)
	}
	return s, err
}

// splitForeign splits an intracommunicator some of whose members run another MPI.
// Those cannot be told of a bad choice: whoever makes one takes part without a
// colour, and nobody waits for it.
func (c *Comm) splitForeign(color, key int, bad error) (*Comm, error) {
	if c.local != nil {
		return nil, errors.Join(bad, errForeign("Split"))
	}
	if bad != nil {
		color, key = Undefined, 0
	}
	// IMPI ch.4, Comm_split: (colour, key) as two MPI_INT; no colour is -1.
	all := make([]int32, 2*c.Size())
	all[2*c.Rank()], all[2*c.Rank()+1] = int32(max(color, -1)), int32(key)
	if err := allgather(c, nil, all); err != nil {
		return nil, err
	}
	var ranks []int
	for r := range c.Size() {
		if color >= 0 && all[2*r] == int32(color) {
			ranks = append(ranks, r)
		}
	}
	if color < 0 {
		d, err := c.derive(comm.Spec{}, nil)
		return d, errors.Join(bad, err)
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	group, err := c.Comm.Group().Incl(ranks)
	if err != nil {
		return nil, err
	}
	return c.derive(comm.Spec{Group: group}, nil)
}
