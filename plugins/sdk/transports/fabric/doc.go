// Package fabric makes links of connections that can read the other side's memory, such as those of
// InfiniBand or of libfabric (data plane "rdma", docs/plugin-protocol.md). A vendor implements Conn
// and Domain; the package does the rest: short messages through bounce memory, long ones that are
// read by the receiver's side straight into the receiver's memory if that is lent, registrations
// that are cached, several rails.
//
// The two sides of a Conn speak the protocol of wire.go, version 1, so both have to be plugins that
// use this package.
package fabric
