// Package startup has the two sides of the protocol by which the clients of a
// job find each other: Server, which collects what every client submits and
// hands all of it to everybody, and Client, which ends with a Job: who takes
// part, where, and what was agreed.
//
// Both are pure machines. Bytes and the time go in; bytes, events and errors
// come out. Whoever owns the sockets calls them, from one goroutine at a time,
// and comes back at Deadline. Neither trusts a byte that it is given: every
// length is bounded before anything is kept, and a peer that breaks the rules
// gets an error that names it, the command, and the field.
//
// IMPI has no message for failure: a side that gives up closes. Both machines
// add a command of their own, wire.CmdFail, which carries the reason and is
// followed by nothing, so that all sides of a job print the same sentence.
package startup
