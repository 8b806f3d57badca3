// Package dynamic has what procs need to reach each other without the hosts in between: business
// cards, which say where a proc can be reached, and the greeting with which both ends of a new
// direct link prove that they belong to the same job. It also has the ports at which worlds connect
// (MPI-4.1, 11.9), and decides which links are made, over which endpoints, and which end makes them
// again. IMPI has none of this: its only links are the channels between hosts (IMPI ch.2,
// Host-to-host connections), which are made here too where both ends are ours.
//
// The package is pure. Bytes, and random bytes, go in; bytes and errors come out. It trusts nothing
// that it reads.
package dynamic
