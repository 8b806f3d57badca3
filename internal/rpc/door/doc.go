// Package door lets those into a service of ours who have its key, and nobody else.
//
// A connection is encrypted by TLS 1.3 with a certificate that the server makes up. What
// proves who is there is the key: each side shows that it knows the key and the secrets of
// this very connection, so that nobody can be in between. Connections that have shown no key
// yet are bounded in number and time, and wrong keys are answered later each time.
package door
