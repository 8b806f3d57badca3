// Package meet joins groups of procs (MPI-4.1, 7.6 and 11.9): intercommunicators, connecting and
// accepting between jobs, spawning, and published names.
package meet
