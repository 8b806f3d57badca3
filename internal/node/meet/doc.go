// Package meet is what a node does about other worlds: the ports of its procs, their connects to
// others' ports, links between procs of different worlds, and the name service (MPI-4.1, 11.8 and
// 11.9). What is decided about them is in core/dynamic.
//
// The node greets who connects to a port and lets the connection wait there, so that who connects is
// answered while the port's owner computes. What they say next is the owner's.
package meet
