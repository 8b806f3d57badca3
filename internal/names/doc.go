// Package names has the server of the name service and a node's client (docs/dynamic.md). What they
// decide is in core/names; here they speak gRPC after both have proved who they are.
//
// Package internal/rpc/auth admits the clients: those that have the server's key.
package names
