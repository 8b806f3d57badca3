// Package include is the folder of the C header with the standard ABI of MPI
// 5.0. C programs include mpi.h; Go code that has to know the functions reads
// it from Header.
package include

import _ "embed"

// Header is the text of mpi.h. It declares functions on a line of their own,
// as "type name(parameters);", every parameter with its name.
//
//go:embed mpi.h
var Header string

// Generated is the text of mpi_generated.h, which mpi.h includes: the functions that follow from
// those of mpi.h, and all by their names that begin with PMPI_. It is generated from Header.
//
//go:embed mpi_generated.h
var Generated string
