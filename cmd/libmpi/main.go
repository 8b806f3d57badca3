//go:build cgo && !386 && !arm

// Command libmpi is the C library of MPI's standard ABI, libmpi_abi.so.1, built
// with -buildmode=c-shared. See docs/abi.md.
//
// The C functions are in stubs.c, which internal/abi/gen makes from include/mpi.h:
// each calls one Go function of this package, abiSend for MPI_Send and MPI_Send_c,
// or abiUnsupported where there is none. Most of those are generated too, from the tables of
// internal/abi. Some C functions are written by hand: direct.c has those that need
// nothing of the library, fastpath.c those that mostly do without Go. Pointers and handles come to
// Go as uintptr: constants such as MPI_IN_PLACE must never be taken for addresses.
package main

func main() {}
