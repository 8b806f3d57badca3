// Package membership decides which hosts of a site are there.
//
// The hosts of a site are connected as a tree with the head, host 0, at its root. Each host has a
// [Member], a state machine that is told what comes from its parent and its children and returns
// what is to be done: pass on what the hosts below have submitted, once all of them are there; send
// a sign of life; report that a host is lost. The head's Member knows when the site is complete,
// when all hosts have finished, and which are missing.
//
// A Member has no clock and no connections: the caller passes the time, calls [Member.Tick] when
// [Member.Deadline] has come, and takes what is to be done from [Member.Next] until there is
// nothing more. It is not safe for use by several goroutines.
package membership
