// Package window has one-sided communication (MPI-4.1, ch. 12): windows, their epochs and locks,
// and operations, which the target executes during any call of MPI that it makes.
package window
