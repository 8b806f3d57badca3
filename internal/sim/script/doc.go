// Package script has programs for simulated jobs, of one world or of several that meet: what they are, how they are
// made at random, written, run and judged.
//
// A Program is a list of steps. A step says what each of its ranks does; every
// rank does its part of the steps in the order of the list, at its own pace.
// Programs are legal MPI: whatever the timing, and even if no send returns
// before its receive has begun, they end, and nothing but the choice among
// wildcard receives depends on the timing. Check decides that. It rests on the
// order of the list: a step may only wait for what stands at it or before it, so
// the first rank that is behind is never the one that waits.
//
// Parse and String are the written form, a line for each step:
//
//	procs 3
//	message 1 from=0 to=2 comm=w tag=5 type=int32 len=70000 mode=synchronous
//	irecv 1
//	barrier w
//	send 1
//	waitall 2 r1
//
// A message stands for one send and one receive. Where receives from any source
// may get messages of several senders, that of one message may get another; it is
// called its receive only so that there are as many receives as sends. Everywhere
// else it is known beforehand which receive gets which message.
//
// Where worlds meet, procs are numbered by world and rank, and `procs 3 2` has two worlds. All
// that has to do with other worlds is left at the end: ports are closed and communicators
// disconnected. Context IDs are then not known beforehand, but agreed by all members, and no
// proc ever gets one twice.
//
// Run executes one rank's part through package mpi and notes in a Record what it
// got. Verify judges the records of all ranks against a model that knows nothing
// of core: what must have been delivered, in which order, with which status and
// contents, and what the results of collectives and the groups of communicators
// are. Generate draws random programs from rapid, which can make failing ones smaller.
package script
