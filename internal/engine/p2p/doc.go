// Package p2p has the point-to-point communication that package proc does not have: Buffers of any
// datatype, probes, persistent and partitioned requests, Waitall and its like, and generalized
// requests.
package p2p
