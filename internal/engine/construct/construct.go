package construct

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Constructors of communicators (MPI-4.1, 7.4.2) are collective over all members of the
// communicator that they are called on, on both sides of an intercommunicator; only CreateGroup is
// not. A new communicator inherits the error handler. If one member cannot make it, no member does,
// unless some members run another MPI library. Several goroutines may call constructors of
// different communicators at a time, in any order.

// WireTag returns the tag of messages of constructor number seq.
func WireTag(seq uint32) wire.Tag { return wire.Tag(seq & (1<<31 - 1)) }

// Dup duplicates a communicator. It copies the attributes first, so that no member gets a
// communicator if copying fails at one.
func Dup(c *proc.Comm, info *proc.Info) (*proc.Comm, error) { return DupFor(c, info, "Dup") }

// DupFor is Dup for a call of another name, which is in the error if members call different ones.
func DupFor(c *proc.Comm, info *proc.Info, call string) (*proc.Comm, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	known := lostNow(c.Process())
	hints, bad := Snapshot(info)
	copies, uncopied := object.CopyAttrs(c)
	if bad == nil {
		bad = uncopied
	}
	d, err := deriveBy(c, collective.ConstructorDup, call, c.Spec(), bad)
	if err != nil {
		object.DropAttrs(c, copies)
		return nil, err
	}
	d.State().Attrs = copies
	setHints(d, hints, known)
	return d, nil
}

// Create makes a communicator of the members of group, or nil for the members of c that are not in
// it (MPI-4.1, 7.4.2).
func Create(c *proc.Comm, group *proc.Group) (*proc.Comm, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	bad := CheckSubset(c, group)
	if c.State().Local != nil {
		return createInter(c, group, bad)
	}
	var s comm.Spec
	if bad == nil && group.Rank() != proc.Undefined {
		s.Group = group.Members()
	}
	return deriveBy(c, collective.ConstructorCreate, "Create", s, bad)
}

// CheckSubset returns an error unless all members of a group are members of c.
func CheckSubset(c *proc.Comm, group *proc.Group) error {
	if err := group.Usable(); err != nil {
		return err
	}
	if !group.Members().IsSubset(c.Comm.Group()) {
		return fmt.Errorf("%w: not all of its %d members are among the %d of the communicator",
			comm.ErrGroup, group.Size(), c.Size())
	}
	return nil
}

// createInter is Create on an intercommunicator: the leaders exchange the groups of their sides.
func createInter(c *proc.Comm, group *proc.Group, bad error) (*proc.Comm, error) {
	if err := collective.CheckConstructor(c, "Create"); err != nil {
		return nil, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	if !AllRunImpi(c) {
		return nil, errors.Join(bad, proc.ForeignError("Create"))
	}
	return partition(c, c.Ordinal(), collective.ConstructorCreate, bad, nil, func(*assembly, []byte) comm.Partition {
		if group.Size() == 0 {
			return nil
		}
		return comm.Partition{{Group: group.Members().Ranks(c.Comm.Group())}}
	})
}

// CreateGroup is Create that only the members of group call; calls with different tags do not
// disturb each other (MPI-4.1, 7.4.2).
func CreateGroup(c *proc.Comm, group *proc.Group, tag int) (*proc.Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	if err := CheckSubset(c, group); err != nil {
		return nil, err
	}
	if tag < 0 || tag > c.TagUB() {
		return nil, fmt.Errorf("%w: %d, the job has 0 to %d", proc.ErrTag, tag, c.TagUB())
	}
	me := group.Rank()
	if me == proc.Undefined {
		return nil, nil
	}
	p, masters := c.Process(), comm.NewMasters(group.Members(), c.Process().Worlds.Clients())
	p.Lock()
	defer p.Unlock()
	if !GroupRunsImpi(p, masters) {
		return nil, proc.ForeignError("CreateGroup")
	}
	x := &agreement{p: p, near: NewExchange(c, ByTagBase, wire.Tag(tag)), tree: comm.NewTree(masters), size: group.Size(), Wide: c.Wide()}
	// Members name themselves by their ranks in c: a member may have called CreateGroup already for
	// another group with the same tag, in which its rank belongs to another proc.
	x.near.names, x.near.Group = x.near.Group, group.Members()
	x.me = x.tree.Position(me)
	x.Propose(collective.ConstructorCreateGroup, nil, func() {})
	x.Wait()
	context, err := x.Conclude(comm.IntraContexts, nil)
	if err != nil {
		return nil, err
	}
	return NewInheriting(c, comm.Spec{Group: group.Members(), Masters: masters}, context)
}

func Twin(c *proc.Comm) (*proc.Comm, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	if !AllRunImpi(c) {
		return nil, nil
	}
	return deriveBy(c, collective.ConstructorDup, "Dup", c.Spec(), nil)
}
