// Package names is the name service of dynamic processes: jobs publish the names of
// ports under services' names, and others look them up. Table has the rules, without
// sockets or clocks; Server keeps a table for those who connect, and Session is a node's
// end. They speak gRPC, once both have proved who they are.
//
// A connection is encrypted, by TLS 1.3 with a certificate that the server makes up.
// What proves who is there is the key: each side shows that it knows the key and the
// secrets of this very connection, so that nobody can be in between, and nobody
// without the key reads or writes anything.
//
// A name belongs to the job that published it, and lasts as long as the connection by
// which it did: it ends when the job does, however that happens.
package names
