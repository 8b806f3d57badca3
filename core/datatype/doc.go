// Package datatype has the types of message data: the basic element types with their sizes, their
// conversion between a host's memory and what is sent, and the reduction operations on them; and
// the datatypes derived from them.
//
// A buffer is a []byte that holds elements of one Kind exactly as the host's compiler lays them
// out. Bytes and View convert between such a buffer and a typed slice without copying.
//
// A Type is any datatype of MPI (MPI-4.1, 5.1): a typemap, bounds, and the way it was made. Items
// of a Type are sent as a stream of bytes, and Pack, Unpack, Encode and Decode move any part of the
// stream without going through what is before it. The stream in a Representation has the elements
// in the order of the typemap without gaps, each in the form that the Representation has for its
// Kind. Type.Packed returns how many bytes an item takes there. For pairs in the native
// representation that is more than Size, since a pair is sent with its padding.
package datatype
