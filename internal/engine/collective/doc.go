// Package collective has the collective operations, neighbourhood ones included: it takes the
// schedules of core/coll and executes them over a communicator of package proc, or uses the memory
// that the procs of a host share.
//
// All members of the communicator call the same operations in the same order (MPI-4.1, 6.14), with
// the same root, operation and amounts. Each call blocks until the caller's part is done, which
// says nothing about the others, but for Barrier (MPI-4.1, 6.1). Buffers must not overlap. A nil
// send buffer means in place (MPI_IN_PLACE; MPI-4.1, 6.2.1): what the caller contributes is in its
// receive buffer, where its result goes.
//
// On an intercommunicator what one group contributes the other gets, and nothing is in place. There
// the root gives Root as the root, the others of its group ProcNull, and the members of the other
// group the root's rank (MPI-4.1, 6.2.3).
//
// In operations of neighbours each member exchanges with its neighbours only (MPI-4.1, 8.6). A
// buffer with a block for each neighbour has them in the order of the topology: on a grid the rank
// below and the rank above in each dimension (CartShift by 1), on a graph that of GraphNeighbors,
// on a distributed graph those of DistGraphNeighbors.
//
// On a grid the block sent to the rank below is received there as the block from above, even if
// both are the same rank. On graphs several messages from one rank to another are received in the
// order in which they are sent. A block of a neighbour beyond the edge of a grid is neither sent
// nor written. The edges of a graph from GraphCreate must lead both ways. InPlace is not allowed.
package collective
