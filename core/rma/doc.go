// Package rma is the computing part of one-sided communication: the format of the messages
// between the members of a window, which operations the open epochs allow, who holds a
// lock, and where in a window's memory an operation goes.
//
// Origin and target are procs that run this library. A request is a header, which carries
// the data too if that is short; longer data follows in a message of its own, and so do the
// answers. The caller moves the messages.
//
// The target decides about everything that touches its memory: a header comes from another
// process, so it is parsed and checked against bounds before anything is done with it.
package rma
