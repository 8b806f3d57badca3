// Package names is the name service (docs/dynamic.md): jobs publish port
// names under service names, and others look them up. Table has the rules, without sockets
// or clocks; Server keeps a table for its clients, and Client is a node's end. They speak
// gRPC after both have proved who they are.
//
// Package internal/rpc/door admits the clients: those that have the server's key.
//
// A name belongs to the job that published it. It ends with the connection on which it was
// published, and so with the job, however the job ends.
package names
