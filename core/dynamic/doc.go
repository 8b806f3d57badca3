// Package dynamic has what procs need to reach each other without the hosts in
// between: business cards, which say where a proc can be reached, and the
// greeting with which both ends of a new direct link prove that they belong to
// the same job.
//
// The package is pure. Bytes, and random bytes, go in; bytes and errors come
// out. It trusts nothing that it reads.
package dynamic
