package comm

import "errors"

// ErrTopology is wrapped by the errors for a communicator that lacks the topology needed, or has
// one that cannot be used for the operation.
var ErrTopology = errors.New("invalid topology")

// Topology defines which members of a communicator are neighbours: *Cart, *Graph or *DistGraph.
type Topology interface {
	// Neighbours returns the neighbours of a rank, or of the calling process if the topology
	// contains only these. The error is ErrTopology if messages between neighbours would not match.
	Neighbours(rank int) (Neighbours, error)
}

// Neighbours are the ranks that messages come from and the ranks that they go to. A rank may be in
// a list several times, and may be the own one (MPI-4.1, 8.6); for ProcNull there is a block in the
// buffers and no message. The lists must not be changed.
type Neighbours struct {
	In, Out []int
	// Opposite is true if a message sent at an even index is received at the odd index after it,
	// and the other way round, as in a Cartesian topology: a message sent down a dimension comes
	// from above (MPI-4.1, 8.6). Otherwise the messages from one rank to another are received in
	// the order in which they are sent.
	Opposite bool
}

// OutIndex returns the place in Out of message number i, so that the messages of each pair of
// ranks come in the order of In.
func (n *Neighbours) OutIndex(i int) int {
	if n.Opposite {
		return i ^ 1
	}
	return i
}
