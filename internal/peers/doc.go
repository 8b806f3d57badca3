// Package peers gets other implementations of IMPI to test ours with, and runs
// them.
//
// LAM/MPI 7.1.4 is the one that can still be built. Nothing of it is in this
// repository: Build fetches its source from the mirror that this machine's own
// package sources name, checks it, and builds it into a folder outside the tree,
// where Find finds it. A Universe is one LAM universe on one machine, which
// does not use rsh and leaves nothing behind.
//
// docs/peers.md says what works with it.
package peers
