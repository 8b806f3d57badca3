// Package meet joins communicators: intercommunicators, procs of other jobs that connect and accept,
// procs that are spawned, names that are published.
package meet
