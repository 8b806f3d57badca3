// Package resume makes one resumable link out of a succession of links that may break. Link
// keeps what the peer has not acknowledged and replays it over the next underlying link:
// nothing is lost and nothing comes twice. docs/decisions/0015-link-resume.md says why it
// is made this way.
//
// The package only computes. The owner of a Link dials or accepts the underlying links,
// passes them to Dial or Accept, looks at Status to see when another one is needed, and
// gives up with Fail; how often and when to try is its decision. One side, the dialler,
// makes all underlying links. Each has an epoch, a number that the dialler raises, and the
// acceptor refuses one that is not newer than the last.
//
// # Stream
//
// Each direction is a sequence of bytes, numbered from 0, and its end (FIN), which takes
// the number after the last byte. A position is the number of the next byte or FIN, and so
// counts what came before it. An acknowledgement is a position up to which everything was
// delivered to the peer's user, FIN included. It is cumulative: a later one makes up for
// any that were lost. The sender keeps everything from the last acknowledgement on, at most
// a window of bytes. The window of a link is the smaller one of what the two sides
// announce. So the receiver has room for all that may come and always reads it at once, and
// one direction never delays the acknowledgements of the other.
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
// Received is the position up to which bytes have come; without checksums that includes a
// part of a frame. It may be higher than the acknowledgement, which is the position up to
// which they were delivered.
//
// The session is a name. It cannot be guessed, but it can be read on the way, so each
// underlying link must be authenticated before (package dynamic).
//
// # End
//
// A side is done when all it sent, FIN included, is acknowledged and the peer's FIN has
// come; then it needs no further underlying link. The last acknowledgement may be lost, so
// the other side may still ask for one: an acceptor should keep a Link that is done for a
// while, to be able to answer.
package resume
