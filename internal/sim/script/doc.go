// Package script contains programs for simulated jobs, of one world or of several that meet: their
// steps, and how they are drawn at random, written, run and judged.
//
// A Program is a list of steps. A step says what each of its ranks does; every rank does its part
// of the steps in the order of the list, at its own pace. Programs are legal MPI: whatever the
// timing, and even if no send returns before its receive has begun, they end, and only the choice
// among wildcard receives depends on the timing. Check decides that. It relies on the order of the
// list: a step may only wait for steps up to and including itself, so the rank that is farthest
// behind never waits.
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
// A message stands for one send and one receive. Where receives from any source may get messages of
// several senders, a message may be received by the receive of another one; that receive belongs to
// it only so that there are as many receives as sends. In all other cases the program determines
// which receive gets which message.
//
// Where worlds meet, procs are numbered by world and rank, and `procs 3 2` has two worlds. At the
// end nothing that concerns other worlds may be left: ports are closed and communicators
// disconnected. Context IDs are not known in advance there, but agreed by all members, and no proc
// ever gets one twice.
//
// Run executes one rank's part through package mpi and records its results in a Record. Verify
// judges the records of all ranks against a model that uses nothing of core: which messages must
// have been delivered, in which order, with which status and contents, and the results of
// collectives and groups of communicators. Generate draws random programs from rapid, which can
// make failing ones smaller.
package script
