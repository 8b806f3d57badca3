// Package life begins and ends a proc (MPI-4.1, 11.2): Init, Finalize, and the ranks of simulators.
package life
