package mpi

import (
	"fmt"
)

// The types of SplitType, with the values of the MPI ABI.
const (
	CommTypeShared         = 221 // procs that can share memory: those of one machine
	CommTypeHWUnguided     = 222 // smaller parts of machines, of which this package knows none
	CommTypeHWGuided       = 223 // parts of machines that info names
	CommTypeResourceGuided = 224 // resources that info names
)

// SplitType makes communicators of the members of c that are alike: that share a
// machine, for CommTypeShared. Members are ordered by key and then by rank in c.
// All of them give the same type, or Undefined, which gives nil, as the other
// types do, of whose hints this package knows none. c is no intercommunicator.
func (c *Comm) SplitType(kind, key int, info *Info) (*Comm, error) {
	d, err := c.splitType(kind, key, info)
	return d, c.failed("SplitType", err)
}

func (c *Comm) splitType(kind, key int, info *Info) (*Comm, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	hints, bad := snapshot(info)
	color := Undefined
	switch kind {
	case CommTypeShared:
		color = c.neighbour()
	case CommTypeHWUnguided, CommTypeHWGuided, CommTypeResourceGuided, Undefined:
	default:
		bad = fmt.Errorf("%w: %d is no type of SplitType", ErrArg, kind)
	}
	if bad != nil {
		color, key = badChoice, 0 // so that all learn of it
	}
	d, err := c.split(color, key)
	if bad != nil {
		return nil, bad
	}
	if d != nil {
		d.hints = hints
	}
	return d, err
}

// badChoice is a colour that no member may give.
const badChoice = -1

// neighbour is the lowest rank of c on this proc's machine.
func (c *Comm) neighbour() int {
	self := c.p.procOf(c.Self())
	for p, rank := range c.Comm.Group().All() {
		if x := c.p.procOf(p); p == c.Self() || x.Machine != "" && x.Machine == self.Machine ||
			x.Client == self.Client && x.Node == self.Node {
			return rank
		}
	}
	return c.Rank()
}
