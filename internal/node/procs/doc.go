// Package procs starts the procs of a site and follows them to their ends: their files, their
// output, their standard input, the signals that they get, and what they say over their control
// sockets. It answers for their lives; what they want of links it passes on.
package procs
