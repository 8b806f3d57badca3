package mpi

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Comparison is how two groups or two communicators relate.
type Comparison = comm.Comparison

// The results of comparisons. Groups are never Congruent.
const (
	Identical = proc.Identical // the same members in the same order; of communicators: the same object
	Congruent = proc.Congruent // communicators of the same groups
	Similar   = proc.Similar   // the same members in another order
	Unequal   = proc.Unequal
)

// Range stands for the ranks First, First+Stride, … that do not pass Last.
type Range = comm.Range

// Group is an ordered set of procs, ranked from 0. It does not change, and stays
// what it is when the communicator that it comes from is freed. nil is
// MPI_GROUP_NULL. What it takes does not grow with its size as long as it is made
// of ranges.
type Group proc.Group

// GroupEmpty is the group without members. It cannot be freed: Free of it, which
// is right as many operations give it, does nothing.
var GroupEmpty = (*Group)(proc.GroupEmpty)

// Check tells whether g can be used: it is ErrGroup for nil and for what has been
// freed, of which Size is 0 and Rank Undefined.
func (g *Group) Check() error { return g.in().Check() }

// Free ends the use of g. What was made of it stays.
func (g *Group) Free() error { return g.in().Free() }

// Size is the number of members.
func (g *Group) Size() int { return g.in().Size() }

// Rank is the calling proc's rank, or Undefined if it is not a member.
func (g *Group) Rank() int { return g.in().Rank() }

// Translate gives for each rank in g the rank of the same proc in h, or
// Undefined. ProcNull stays ProcNull. A rank that g does not have is ErrRank.
func (g *Group) Translate(ranks []int, h *Group) (out []int, err error) {
	return g.in().Translate(ranks, h.in())
}

// Compare says whether g and h have the same members in the same order
// (Identical), in another order (Similar), or not (Unequal).
func (g *Group) Compare(h *Group) (Comparison, error) { return g.in().Compare(h.in()) }

// Union is all of g in order, then those members of h that g lacks, in h's order.
func (g *Group) Union(h *Group) (*Group, error) { return outGroup(g.in().Union(h.in())) }

// Intersection is the members of g that h has too, in g's order.
func (g *Group) Intersection(h *Group) (*Group, error) { return outGroup(g.in().Intersection(h.in())) }

// Difference is the members of g that h lacks, in g's order.
func (g *Group) Difference(h *Group) (*Group, error) { return outGroup(g.in().Difference(h.in())) }

// Incl is the group whose rank i is g's ranks[i]. It is ErrRank if a rank is
// outside g or listed twice, and ErrArg if there are more ranks than members.
func (g *Group) Incl(ranks []int) (*Group, error) { return outGroup(g.in().Incl(ranks)) }

// Excl is g without the listed ranks, in g's order. The errors are those of Incl.
func (g *Group) Excl(ranks []int) (*Group, error) { return outGroup(g.in().Excl(ranks)) }

// RangeIncl is Incl of the ranks that the ranges stand for, which are not listed
// one by one. A stride of 0, or one that leads away from the end, is ErrRange
// unless there is only one rank.
func (g *Group) RangeIncl(ranges []Range) (*Group, error) { return outGroup(g.in().RangeIncl(ranges)) }

// RangeExcl is Excl of the ranks that the ranges stand for. The errors are those
// of RangeIncl.
func (g *Group) RangeExcl(ranges []Range) (*Group, error) { return outGroup(g.in().RangeExcl(ranges)) }

// Group gives the group of c; of an intercommunicator the local one.
func (c *Comm) Group() (*Group, error) { return outGroup(c.in().Group()) }
