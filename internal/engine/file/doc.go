// Package file has MPI's files (MPI-4.1, 14.2): views, the three sorts of pointers, data
// representations. A file is opened by all members of a communicator; each member reads and writes
// it by its own system calls, so that the members need a file system that all of them see.
//
// Functions return errors without the name of the function of MPI, and call no handler: their
// callers do both.
package file
