// Package file has MPI's files: views, the three sorts of pointers, data representations. A file is
// opened by all members of a communicator; each member reads and writes it by its own system calls,
// so that the members need a file system that all of them see.
//
// Functions give errors as they are: who calls them puts names before them and tells handlers.
package file
