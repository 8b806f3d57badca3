// Package quic is the transport over QUIC: TLS 1.3 with certificates on both
// sides, over UDP, through networks that lose packets and change addresses.
//
// # The protocol
//
// A connection belongs to two plugins, and carries the links of many pairs of
// procs. The side that dialled opens bidirectional streams, the other one opens
// none. ALPN is "impi/1".
//
// Stream 0 is the control stream. The dialler begins it with the byte 1, the
// version. Then each side writes, as 8 bytes, most significant first, the number of
// each link's stream whose end it has closed. A link is over when both have: from
// then on nobody wants anything of it, and a connection without links may be closed
// without loss. A connection may carry links again; the dialler closes it when it
// had none for some time, the other side when its listener is closed.
//
// Each further stream is a link. The dialler begins it with the byte 1, the other
// side answers with the byte 1, and what follows are the link's own bytes. Or it
// refuses: it resets the stream.
//
//	reset     1  nobody listens here any more
//	reset     2  too many links wait to be accepted
//	reset     3  bytes of this link were lost
//	stop      0  this end of the link is closed
//	close     0  the connection is not used any more
//	close     1  the peer broke the rules above
//	close     2  the process ends
//
// Streams of one connection do not wait for each other: a lost packet delays those
// whose bytes it had, and a reader that stops has its own window.
package quic
