// Package names is the name service of dynamic processes: jobs publish the names of
// ports under services' names, and others look them up. Table has the rules, without
// sockets or clocks; Server keeps a table for those who connect, and Session is a node's
// end. They speak gRPC, once both have proved who they are.
//
// Package internal/rpc/door says who gets in: those who have the job's key.
//
// A name belongs to the job that published it, and lasts as long as the connection by
// which it did: it ends when the job does, however that happens.
package names
