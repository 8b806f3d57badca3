// Package proc is a proc of a job: the process's lock, its links to the node and to other procs,
// the engine of messages between them, requests, communicators and what else programs have handles
// of, and blocking sends and receives of elements. It is the lowest room of the engine behind
// core/mpi; the rooms above work on its Process and its Comm.
//
// Progress is made by the goroutines that call MPI: see Process.
package proc
