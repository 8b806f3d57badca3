// Package protocol judges an implementation of IMPI 0.0 from outside, over real sockets: the
// test that NIST once offered, as one command. A run chooses cases, has package play play
// them against an implementation (package iut), and makes a report of the verdicts.
package protocol
