// Package links is how one finds out by which transports the procs of a running
// job are linked, and why: the control socket that every node has in its run
// directory, what is asked and answered there, how the answers of a job's nodes
// are put together, what would make a pair faster, and how that is shown.
//
// A node answers with what it knows itself (Node); whoever asks merges the
// answers of all nodes that it can reach (Job). Nobody waits for anybody without
// a deadline.
package links
