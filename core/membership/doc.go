// Package membership decides which hosts of a site are there.
//
// The hosts of a site are connected as a tree with the head, host 0, at its root. Each of
// them has a [Member], which is told what comes from its parent and its children and says
// what is to be done: pass on what the hosts below have, once all of them are there; say that
// it is alive; report that a host is lost. The head's Member knows when the site is whole,
// when all of its hosts have finished, and which of them is missing.
//
// A Member has no clock and no connections: the caller passes the time, calls [Member.Tick]
// when [Member.Deadline] has come, and takes what is to be done from [Member.Next] until there
// is nothing more. It is not safe for use by several goroutines.
package membership
