// Package rdma is the memory that a proc and a plugin share for data plane "rdma": two rings of
// entries, one with what the proc submits and one with what the plugin has completed, and bounce
// memory for data. docs/plugin-protocol.md has it byte by byte. Link is the proc's side, Port the
// plugin's. Regions is memory that a proc lends to its plugins, so that these register it once and
// read from it, and write to it, without a copy.
//
// Neither side trusts the other: each copies an entry once and checks all of it before use.
package rdma
