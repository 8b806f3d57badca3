// Package abi knows the functions of MPI's standard ABI, which the C library
// exports: their prototypes, from include/mpi.h, and which of them are implemented.
package abi

//go:generate go run ./gen
