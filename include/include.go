// Package include is the folder of the C header with the standard ABI of MPI
// 5.0. C programs include mpi.h; Go code that has to know the functions reads
// it from Header.
package include

import _ "embed"

// Header is the text of mpi.h. It declares each function on a line of its own,
// as "type name(parameters);", every parameter with its name.
//
//go:embed mpi.h
var Header string

// Profiling is the text of mpi_profiling.h, which mpi.h includes: the functions whose names begin with
// PMPI_. It is generated from Header.
//
//go:embed mpi_profiling.h
var Profiling string
