// Package startup has the two sides of the protocol by which the clients of a job find each
// other (IMPI ch.2, Startup; docs/wire.md). Server collects what every client submits and
// sends all of it to every client. Client ends with a Job: who takes part, where they are,
// and what was agreed.
//
// Both are pure machines: bytes and the time go in; bytes, events and errors come out. The
// owner of the sockets calls them, from one goroutine at a time, and calls Tick at
// Deadline. Neither trusts its input: every length is checked before anything is kept, and
// a peer that breaks the rules gets an error that names it, the command, and the field.
//
// IMPI has no message for failure: a side that gives up closes its connection. Both
// machines add a command of their own, wire.CmdFail, which carries the reason and after
// which nothing follows, so that all sides of a job print the same sentence.
package startup
