package mpi

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
)

// Constructors of communicators are collective over all members of the one that
// they are called on, of an intercommunicator on both sides, but for CreateGroup.
// A new communicator inherits the error handler. Where one member cannot make it,
// nobody does, unless some members run another MPI library. Several goroutines
// may call constructors of different communicators at a time, in any order.

// wireTag is the tag of messages of constructor number seq.
func wireTag(seq uint32) wire.Tag { return wire.Tag(seq & (1<<31 - 1)) }

// Dup makes a communicator of the same members and topology, whose messages are
// kept apart from c's. Attributes are copied as their CopyFuncs say.
func (c *Comm) Dup() (*Comm, error) {
	d, err := c.dup(nil)
	return d, c.failed("Dup", err)
}

// DupWithInfo is Dup with hints for the new communicator. A nil info has none.
func (c *Comm) DupWithInfo(info *Info) (*Comm, error) {
	d, err := c.dup(info)
	return d, c.failed("DupWithInfo", err)
}

// dup copies the attributes first, so that no member gets a communicator where
// one member's copying fails.
func (c *Comm) dup(info *Info) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	hints, bad := snapshot(info)
	copies, uncopied := c.copyAttrs()
	if bad == nil {
		bad = uncopied
	}
	d, err := c.deriveBy(doesDup, c.Spec(), bad)
	if err != nil {
		c.dropAttrs(copies)
		return nil, err
	}
	d.attrs, d.hints = copies, hints
	return d, nil
}

// Create makes a communicator of the members of group, which are members of c, in
// the order of the group. Others get nil. Members may give different groups if
// those have no member in common and each is in the one that it gives.
//
// Of an intercommunicator each side gives a part of its own group; nobody gets
// anything if one side gives an empty one.
func (c *Comm) Create(group *Group) (*Comm, error) {
	d, err := c.create(group)
	return d, c.failed("Create", err)
}

func (c *Comm) create(group *Group) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	bad := c.holds(group)
	if c.local != nil {
		return c.createInter(group, bad)
	}
	var s comm.Spec
	if bad == nil && group.Rank() != Undefined {
		s.Group = group.g
	}
	return c.deriveBy(doesCreate, s, bad)
}

// holds tells whether c has all members of a group.
func (c *Comm) holds(group *Group) error {
	if err := group.check(); err != nil {
		return err
	}
	if !group.g.Within(c.Comm.Group()) {
		return fmt.Errorf("%w: not all of its %d members are among the %d of the communicator",
			comm.ErrGroup, group.Size(), c.Size())
	}
	return nil
}

// createInter has the leaders exchange the groups of their sides.
func (c *Comm) createInter(group *Group, bad error) (*Comm, error) {
	if err := c.announce("Create"); err != nil {
		return nil, err
	}
	p := c.p
	p.lock()
	defer p.unlock()
	if !c.ours() {
		return nil, errors.Join(bad, errForeign("Create"))
	}
	return c.partition(doesCreate, bad, nil, func(*assembly, []byte) comm.Partition {
		if group.Size() == 0 {
			return nil
		}
		return comm.Partition{{Group: group.g.Ranks(c.Comm.Group())}}
	})
}

// CreateGroup makes a communicator of the members of group, which are members of
// c, in the order of the group. Only they need call it; others get nil at once.
// The tag tells calls apart that are made by several goroutines at a time. c is
// no intercommunicator.
func (c *Comm) CreateGroup(group *Group, tag int) (*Comm, error) {
	d, err := c.createGroup(group, tag)
	return d, c.failed("CreateGroup", err)
}

func (c *Comm) createGroup(group *Group, tag int) (*Comm, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	if err := c.holds(group); err != nil {
		return nil, err
	}
	if tag < 0 || tag > c.tagUB() {
		return nil, fmt.Errorf("%w: %d, the job has 0 to %d", ErrTag, tag, c.tagUB())
	}
	me := group.Rank()
	if me == Undefined {
		return nil, nil
	}
	p, masters := c.p, comm.NewMasters(group.g, c.p.clients())
	p.lock()
	defer p.unlock()
	if !p.ours(masters) {
		return nil, errForeign("CreateGroup")
	}
	x := &agreement{p: p, near: c.talk(byTag, wire.Tag(tag)), tree: comm.NewTree(masters), size: group.Size(), wide: c.wide()}
	// Members are told apart by their ranks in c: in another group with the tag, which
	// somebody may be ahead with, another proc has the same rank.
	x.near.names, x.near.group = x.near.group, group.g
	x.me = x.tree.Position(me)
	x.propose(doesCreateGroup, nil, func() {})
	x.wait()
	context, err := x.settle(comm.IntraContexts, nil)
	if err != nil {
		return nil, err
	}
	return c.adopt(comm.Spec{Group: group.g, Masters: masters}, context)
}
