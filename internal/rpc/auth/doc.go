// Package auth admits the clients of a service that have its key, and no others.
//
// A connection is encrypted by TLS 1.3 with a certificate that the server makes for itself.
// The key proves who is at the other end: each side shows that it knows the key and a
// secret of this connection, so that nobody can be in between. Connections that have not
// proved the key are limited in number and time, and answers to wrong keys are delayed more
// each time (docs/decisions/0033-unproved-connections.md).
package auth
