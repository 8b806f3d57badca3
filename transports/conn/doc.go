// Package conn is a link over a connection that lives in this process: TLS, a
// QUIC stream, a WebSocket, whatever has blocking Read, Write and CloseWrite.
//
// The bytes go through a ring (package ring) whose other side a Pump serves. In a
// plugin the ring leads to another process, and the link is given up for its
// connection before it was ever used; used where it was made, it makes a ring of
// its own.
package conn
