// Package datatype has what messages are made of: the basic element types with
// their sizes, their conversion between a host's own layout and what travels, and
// the reduction operations over them; and the datatypes derived from them.
//
// A buffer is a []byte that holds elements of one Kind exactly as the host's
// compiler lays them out. Bytes and View go between such a buffer and a typed
// slice without copying.
//
// A Type is any datatype of MPI: a typemap, bounds, and the way it was made. The
// items of a Type in memory are a stream of bytes when they travel, and Pack,
// Unpack, Encode and Decode move any part of the stream without going through
// what is before it. The stream of a Representation holds the elements in the
// order of the typemap without gaps, each as the Representation has its Kind;
// Type.Packed tells how many bytes an item takes there, which for pairs in the
// native representation is more than Size, since a pair travels with its padding.
package datatype
