// Package p2p has the rest of point-to-point communication, over what package proc has: Buffers of
// any datatype, probes, persistent and partitioned requests, Waitall and its like, generalized
// requests; and attributes and derived datatypes.
package p2p
