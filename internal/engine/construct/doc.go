// Package construct makes communicators of others: dup, split, create, topologies. Members agree on
// context IDs by messages of their own, or, with members that run another MPI, as IMPI says. It
// frees communicators, too.
package construct
