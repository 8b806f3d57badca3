// Package procs starts the procs of a site and follows them to their ends: it opens their files,
// passes on their output, their standard input and signals, and reads their control sockets. What
// they ask for there about links is passed on to the rest of the node.
package procs
