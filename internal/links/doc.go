// Package links finds out by which transports the procs of a running job are linked, and
// why. It has the control socket that every node has in its run directory, the requests and
// answers, the merging of the answers of a job's nodes, advice what would make a pair
// faster, and the output for operators.
//
// A node answers with what it knows itself (Node); the client merges the answers of all
// nodes that it can reach (Job). Every wait has a deadline.
package links
