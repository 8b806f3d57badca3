// Package bootstrap makes one job of processes that a process manager of others has started, such
// as srun --mpi=pmi2, mpiexec.hydra or Open MPI's mpirun: nobody has started impi-node, and there
// is no job file.
//
// What happens in Init of each process:
//
//   - It learns its rank by PMI, or by PMIx where there is no PMI, and which ranks are on which
//     machine. Ranks in a row on one machine are a [Block]: a host of the site that all of
//     them make, with a node of its own.
//   - The first rank of a block starts impi-node and tells it about the block ([Order]). The node
//     opens a socket for the block's procs and chooses the machine's address; the first
//     one's is the head of the site. The rank publishes that ([NodeAddress]) in PMI's
//     key-value space.
//   - All wait at a fence. First ranks give their nodes the node addresses of the others. Each rank
//     connects to its node's socket and says who it is, and is then like a proc that a node
//     has started.
//
// PMI stays open: Abort ends the job by it, and a process that ends before Finalize is noticed by
// the process manager as well as by its node.
package bootstrap
