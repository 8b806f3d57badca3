// Package meet connects the procs of a node with other worlds: their ports, their connects to
// ports of others, links between procs of different worlds, and the name service (MPI-4.1, 11.8 and
// 11.9). The decisions are made by core/dynamic and core/names.
//
// The node itself answers the greeting of a connection to a port and keeps the connection until the
// port's owner accepts it. So a caller gets its answer although the owner computes. Every byte
// after the greeting is for the owner.
package meet
