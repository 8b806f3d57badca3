// Package resume makes one resumable link out of a succession of links that may be
// cut. Link keeps what the peer has not acknowledged and replays it over the
// next underlying link: nothing is lost and nothing comes twice.
//
// The package computes only. Who owns a Link dials or accepts the underlying
// links, hands them over (Dial, Accept), looks at Status to see when another one
// is needed, and gives up with Fail; attempts and delays are its own. One side,
// the dialler, makes all underlying links; each has an epoch, a number that the
// dialler raises, and the acceptor takes none that is not newer than the last.
//
// # Stream
//
// Each direction is a sequence of bytes, numbered from 0, and its end (FIN),
// which takes the number after the last byte. A position is the number of the
// next thing: so many came before it. An acknowledgement is a position up to
// which everything was delivered to the peer's user, FIN included; it is
// cumulative, so a later one makes up for any that were lost. The sender keeps
// what is beyond it, and never has more than a window of bytes beyond it under
// way. The window of a link is the smaller of what the two sides announce, so
// the receiver has room for whatever may come, reads it at once, and one
// direction never holds up the acknowledgements of the other.
//
// # Frames
//
// All integers are big-endian. A frame is a header of 32 bytes and length bytes:
//
//	 0   1  version, 1
//	 1   1  type
//	 2   2  flags: bit 0, both checksums are there; bit 1, in HELLO only, the
//	        sender wants checksums in all frames; others 0
//	 4   4  length of what follows the header
//	 8   8  sequence: the position of the sender's stream at which the frame is
//	16   8  acknowledgement: position in the receiver's stream
//	24   4  CRC-32C of what follows the header, or 0
//	28   4  CRC-32C of bytes 0 to 27, or 0
//
// Frames have checksums if either side wants it; HELLO and GONE always do.
//
//	1 HELLO  first frame of each side on each underlying link; see below
//	2 DATA   1 or more bytes of the stream
//	3 ACK    nothing but the header; sent when a quarter of a window, or the FIN,
//	         was delivered and no other frame has said so
//	4 FIN    the end of the stream; length 0
//	5 GONE   the sender has closed the link or given it up: it will neither take
//	         nor replay anything; length and sequence 0. In place of HELLO: it
//	         does not know the session (then the acknowledgement is 0 too)
//
// On one underlying link frames follow each other without gap or repetition, so
// any sequence but the expected one is an error, and so is an acknowledgement
// that is lower than the last or beyond what was sent on the link.
//
// # Handshake
//
// The dialler sends HELLO, the acceptor answers with HELLO, then both go on with
// the byte that the other's HELLO asks for. The header's sequence is the oldest
// position that the sender could replay; 40 bytes follow the header:
//
//	 0  16  session
//	16   8  epoch: the dialler's choice, echoed by the acceptor
//	24   8  received: position from which the peer must go on
//	32   4  window, in bytes, always the same in a session
//	36   4  0
//
// Received is what has come; without checksums that includes a part of a frame.
// It may be more than the acknowledgement, which is what was delivered.
//
// The session is a name, unguessable but readable on the way: who may speak at
// all must be settled before, on each underlying link (package dynamic).
//
// # End
//
// A side is done when all it sent, FIN included, is acknowledged and the peer's
// FIN has come; it needs no further underlying link then. As the last
// acknowledgement of all may be lost, the other side may still ask: an acceptor
// should keep a Link that is done for a while, so that it can answer.
package resume
