// Package p2p has the rest of point-to-point communication, over what package proc has: Buffers of
// any datatype, probes, persistent and partitioned requests, Waitall and its like, and generalized
// requests.
package p2p
