// Package conn makes a link of a connection that lives in this process and has blocking
// Read, Write and CloseWrite: TLS, a QUIC stream, a WebSocket.
//
// The bytes pass through a ring (package ring); a Pump moves them between the ring's other
// side and the connection. In a plugin the link gives up its connection before it was used
// (Detach), and the ring leads to another process. A link that is used in the process that
// made it makes a ring of its own.
package conn
