// Package native lets a proc use the MPI library of its site: inside the site bytes move by that
// library, which is started by its own launcher and uses its own fabric.
//
// A small C file, shim.c, is compiled against that library's mpi.h by its own mpicc (Build). A proc
// loads the result with dlopen, so that the MPI_ functions of that library and ours do not meet,
// and calls it by a table of functions (shim.h). On top of it are a link for each other proc of the
// site (Links), which is a link like all others to the engine, and the phases of collectives inside
// the site.
package native
