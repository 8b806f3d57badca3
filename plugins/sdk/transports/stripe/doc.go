// Package stripe makes one connection of several, over which its bytes are divided. One TCP
// connection has one congestion window and one buffer on each side, which bound what it carries
// over a long round trip, and a lost packet halves its rate; several have several of each. Most
// links carry little, so that a stripe begins with one connection, and its dialler adds the others
// once much has gone over it.
//
// # The protocol
//
// The dialler begins each connection with a hello of 24 bytes:
//
//	0   4  the letters "impS"
//	4   1  version, 2
//	5   1  which connection this is, from 0
//	6   1  how many there may be, 1 to 32
//	7   1  0
//	8  16  a random number, the same for all
//
// Connection 0 is the first one, and the others come later, in any order, or not at all. The
// accepting side answers each with the byte 1, from which on both sides use it, or closes it: then
// the stripe goes on without. The bytes of a stripe that may have one connection only are as they
// are from here on.
//
// Otherwise both sides send blocks. Each goes over one connection, whichever has room, and begins
// with 12 bytes, big-endian:
//
//	0   4  how many bytes follow, up to 65536; 0: the stream has ended
//	4   8  the number of this block in the stream, from 0
//
// The last thing on each connection is a block without bytes, which has the number of blocks of the
// stream on all of them, and then the end of that connection's own stream. An end without it means
// that bytes were lost.
package stripe
