package mpi

import (
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/meet"
)

// Dup makes a communicator of the same members and topology, whose messages are
// kept apart from c's. Attributes are copied as their CopyFuncs say.
func (c *Comm) Dup() (*Comm, error) { return outComm(construct.Dup(c.in())) }

// DupWithInfo is Dup with hints for the new communicator. A nil info has none.
func (c *Comm) DupWithInfo(info *Info) (*Comm, error) {
	return outComm(construct.DupWithInfo(c.in(), info.in()))
}

// Create makes a communicator of the members of group, which are members of c, in
// the order of the group. Others get nil. Members may give different groups if
// those have no member in common and each is in the one that it gives.
//
// Of an intercommunicator each side gives a part of its own group; nobody gets
// anything if one side gives an empty one.
func (c *Comm) Create(group *Group) (*Comm, error) {
	return outComm(construct.Create(c.in(), group.in()))
}

// CreateGroup makes a communicator of the members of group, which are members of
// c, in the order of the group. Only they need call it; others get nil at once.
// The tag tells calls apart that are made by several goroutines at a time. c is
// no intercommunicator.
func (c *Comm) CreateGroup(group *Group, tag int) (*Comm, error) {
	return outComm(construct.CreateGroup(c.in(), group.in(), tag))
}

// Idup begins a Dup. The new communicator can be used once the request is
// complete, and never if that has failed. Other constructors of c and of others
// may begin meanwhile, in the same order on all members of c. Where members run
// another MPI library it is a Dup, and the request is null.
func (c *Comm) Idup() (*Comm, Request, error) { return outCommRequest(construct.Idup(c.in())) }

// IdupWithInfo begins a DupWithInfo. info may be freed at once.
func (c *Comm) IdupWithInfo(info *Info) (*Comm, Request, error) {
	return outCommRequest(construct.IdupWithInfo(c.in(), info.in()))
}

// SetInfo adds hints to those of c, or replaces them by key (MPI_Comm_set_info). No hint changes
// what a communicator does so far.
func (c *Comm) SetInfo(info *Info) error { return construct.SetInfo(c.in(), info.in()) }

// GetInfo gives a copy of the hints of c, which the caller has to Free.
func (c *Comm) GetInfo() (*Info, error) { return outInfo(construct.GetInfo(c.in())) }

// The types of SplitType, with the values of the MPI ABI.
const (
	CommTypeShared         = construct.CommTypeShared         // procs that can share memory: those of one machine
	CommTypeHWUnguided     = construct.CommTypeHWUnguided     // smaller parts of machines, of which this package knows none
	CommTypeHWGuided       = construct.CommTypeHWGuided       // parts of machines that info names
	CommTypeResourceGuided = construct.CommTypeResourceGuided // resources that info names
)

// SplitType makes communicators of the members of c that are alike: that share a
// machine, for CommTypeShared. Members are ordered by key and then by rank in c.
// All of them give the same type, or Undefined, which gives nil, as the other
// types do, of whose hints this package knows none. c is no intercommunicator.
func (c *Comm) SplitType(kind, key int, info *Info) (*Comm, error) {
	return outComm(construct.SplitType(c.in(), kind, key, info.in()))
}

// Split makes one communicator for each colour that members give, of those that
// give it, ordered by key and then by rank in c. All members of c call it, of an
// intercommunicator on both sides: its members of one colour on either side are
// joined to an intercommunicator. nil is for those of the colour Undefined, and
// of one that the other side lacks.
func (c *Comm) Split(color, key int) (*Comm, error) {
	return outComm(construct.Split(c.in(), color, key))
}

// Twin is Dup without attributes and hints, for what a library does by itself on a
// communicator of the program's. Where members run another MPI library it is nil: nobody
// there would call it. All members call it.
func (c *Comm) Twin() (*Comm, error) { return outComm(construct.Twin(c.in())) }

// TestInter tells whether c is an intercommunicator: one that joins two groups,
// whose messages go from members of one group to members of the other.
func (c *Comm) TestInter() (bool, error) { return construct.TestInter(c.in()) }

// Compare says how c and d relate: the same object (Identical), the same groups
// (Congruent), the same members in another order (Similar), or Unequal.
func (c *Comm) Compare(d *Comm) (Comparison, error) { return construct.Compare(c.in(), d.in()) }

// RemoteSize is the number of members of an intercommunicator's remote group.
func (c *Comm) RemoteSize() (int, error) { return construct.RemoteSize(c.in()) }

// RemoteGroup gives the remote group of an intercommunicator.
func (c *Comm) RemoteGroup() (*Group, error) { return outGroup(construct.RemoteGroup(c.in())) }

// IntercommCreate makes an intercommunicator of the group of c, an
// intracommunicator, and another one that has no member in common with it. All
// members of both call it on theirs. localLeader is a rank in c, that of the
// member that talks to the other group's leader, which is remoteLeader in peer.
// peer and remoteLeader matter at the leaders only. Both sides give the same tag.
func (c *Comm) IntercommCreate(localLeader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	return outComm(meet.IntercommCreate(c.in(), localLeader, peer.in(), remoteLeader, tag))
}

// Merge makes an intracommunicator of both groups of an intercommunicator. All
// members of both call it. The group whose members give true for high comes
// after the other one. Where both give the same, the group comes first whose
// first member has the lower rank in World.
func (c *Comm) Merge(high bool) (*Comm, error) { return outComm(meet.Merge(c.in(), high)) }
