// Package window has one-sided communication: windows, their epochs and locks, and operations, which
// the target carries out in whatever call of MPI it makes.
package window
