// Package rma is the computing part of one-sided communication: what the messages
// between the members of a window look like, who may do what when, whose turn a
// lock is, and where in a window's memory an operation goes.
//
// Origin and target are procs that run this library. A request is a header, which
// carries the data too if that is short; longer data follows in a message of its
// own, and so do the answers. Whoever uses this package moves the messages.
//
// The target decides about everything that touches its memory: a header comes from
// outside, and is parsed and bounded before anything is done about it.
package rma
