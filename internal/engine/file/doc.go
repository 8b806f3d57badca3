// Package file has MPI's files (MPI-4.1, 14.2): views, the three sorts of pointers, data
// representations. A file is opened by all members of a communicator, in a file system that all of
// them see. In independent operations each member reads and writes by its own system calls; in
// collective ones aggregators do so for all members, if that makes large accesses of small ones.
//
// Functions return errors without the name of the function of MPI, and call no handler: their
// callers do both.
package file
