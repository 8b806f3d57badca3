// Package inject runs a program and all that it starts so that chosen system calls of them fail, or
// write less than they were asked to.
//
// It does so by the kernel's seccomp with user notification: a filter that all these processes
// inherit stops them at the system calls in question until the process that called Start has said
// what becomes of them. So calls are counted for each process, however many threads it has and in
// whatever order they run, where strace counts those of each thread
// (docs/decisions/0069-failed-system-calls.md). A call that fails is not made. A short write is
// made, with half of the bytes, by that process itself on the descriptor.
package inject
