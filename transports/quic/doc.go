// Package quic is the transport over QUIC: TLS 1.3 with certificates on both
// sides, over UDP, through networks that lose packets and change addresses.
//
// # The protocol
//
// A connection belongs to two plugins, and carries the links of many pairs of
// procs. The side that dialled opens bidirectional streams, the other one opens
// none. ALPN is "impi/1".
//
// Stream 0 is the control stream. The dialler begins it with the byte 1, the version. After
// that each side writes on it, as 8 bytes big-endian, the stream number of each link whose
// end it has closed. A link has ended when both sides have closed it; then neither needs
// anything of it, and a connection without links can be closed without loss. A connection
// may get new links. The dialler closes it after some time without links, the other side
// when its listener is closed.
//
// Each further stream is a link. The dialler begins it with the byte 1, the other side
// answers with the byte 1, and the link's own bytes follow. To refuse the link, the other
// side resets the stream.
//
//	reset     1  nobody listens here any more
//	reset     2  too many links wait to be accepted
//	reset     3  bytes of this link were lost
//	reset     4  the dialler's certificate is not accepted any more: a new connection says why
//	stop      0  this end of the link is closed
//	close     0  the connection is not used any more
//	close     1  the peer broke the rules above
//	close     2  the process ends
//	close     3  nothing was heard of the peer for the idle timeout
//
// If the listener's address ends with a number, as in "192.0.2.7:7800/8", a link may have up to so
// many streams, which should be on different connections, and begins with one; package stripe has
// what is on them.
//
// Streams of one connection do not block each other: a lost packet delays only the streams
// whose bytes it had, and each stream has a window of its own.
package quic
