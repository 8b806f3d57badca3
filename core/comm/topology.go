package comm

import "errors"

// ErrTopology is wrapped when a communicator lacks the topology asked for, or has
// one that does not do for what is asked.
var ErrTopology = errors.New("invalid topology")

// Topology says which members of a communicator are neighbours: *Cart, *Graph or
// *DistGraph.
type Topology interface {
	// Neighbours gives those of a rank, or of the calling process where more is
	// not known. It is ErrTopology if messages of neighbours would not match.
	Neighbours(rank int) (Neighbours, error)
}

// Neighbours are ranks that something comes from and ranks that something goes
// to. A rank may be in a list several times, and may be the own one; ProcNull has
// a place and nothing else. The lists must not be changed.
type Neighbours struct {
	In, Out []int
	// Opposite says that what goes out at an even place comes in at the odd place
	// after it, and the other way round: downwards means from above. Otherwise the
	// messages from one rank to another come in in the order in which they go out.
	Opposite bool
}

// Turn is the place in Out that the message number i goes to, so that messages of
// one pair of ranks come in in the order of In.
func (n *Neighbours) Turn(i int) int {
	if n.Opposite {
		return i ^ 1
	}
	return i
}
