// Package agree decides how the members of a group agree on a value although some of them fail: the
// agreement of MPI's user-level failure mitigation (MPIX_Comm_agree, MPIX_Comm_iagree, and the one
// inside MPIX_Comm_shrink). Each member contributes flags, two numbers, and the failures that it
// has acknowledged. All that live get the same result: the flags combined by AND, the larger of the
// numbers, the members that have failed, and which of these all had acknowledged.
//
// The algorithm is early returning agreement (T. Herault, A. Bouteiller, G. Bosilca, M. Gamell,
// K. Teranishi, M. Parashar, J. Dongarra: "Practical Scalable Consensus for Pseudo-Synchronous
// Distributed Systems", SC'15). A member returns as soon as it knows the result, not when all know
// it; the others can still get it from those that do.
//
// # How it works
//
// The members are a tree. Each sends its parent one message once all its children have sent it
// theirs; when the root has those of all its children it has decided, and each member that learns
// the result answers its children with it. Without failures that is one message up and one down for
// each member but the root. The lowest living rank of a site is the only one that sends to another
// site, so that an agreement over sites takes one round trip between them, however many procs there
// are.
//
// A member that learns of a failure may get another parent or more children. It sends its new
// parent what it has sent the old one, or the result if it knows it, also long after its own
// agreement has returned. So whoever becomes the root learns the result if any living member has
// it, or else that nobody has, and then decides anew.
//
// A member remembers a result until it knows that no living member needs it: the result of each
// agreement has a sequence number below which all have returned.
//
// # How to drive it
//
// A [Member] has no clock, goroutine or connection. There is one for each communicator that is
// agreed on, made by [New] when the communicator is made. The engine
//
//   - calls [Member.Failed] for each member that it knows to have failed, also those known before
//     New, and those in [Decision.Failed], which it may not have heard of itself;
//   - calls [Member.Begin] for each agreement that the program begins, in the order in which MPI
//     wants all members to begin them; those of shrink are in the same order as the others;
//   - calls [Member.Receive] for each message of another member;
//   - after each of these calls, takes what is to be sent by [Member.Next] and what was decided by
//     [Member.Decided], until there is nothing more.
//
// Messages must arrive whole; those of one sender may overtake each other. A message to a member
// that has failed may be lost. The engine must not let a Member go when its communicator is freed
// or revoked: other members may still ask for the last result, until the job ends. It must hand
// over messages that arrive before New once the Member is there.
//
// Failures are final: a member that was reported as failed, and lives, must end, as the others go
// on without it. [ErrExcluded] says that they have.
//
// # What holds, and why
//
// Failures are only reported of members that have failed, each to all that live, at any time and
// in any order. Let an open message be one that a member sends its parent before it knows the
// result.
//
// Everybody is counted. The parent of a member changes only when it has failed, and depends only on
// which have failed: in its site the nearest ancestor that lives, else the lowest rank of the site
// that lives; for that one the lowest of all. An open message says that everybody below its sender
// has contributed or is known to have failed; that is so if it is true of its children, and the
// root has everybody below it. So each member that is not in Failed of a result has contributed to
// it.
//
// All that live get the same. While a member's parent lives, a member that has sent it an open
// message can get the result from it alone: it takes answers only from its parent, nothing
// from those it knows to have failed, and a member below that sends the result without being asked
// has lost its parent, which was counted as open, and got its result only by way of that. So if a
// root decides anew, then all that live are open towards it, nobody has a result, and nobody will
// get one but from it. If somebody living has a result, the root is sent it, or its sender fails
// first, and those that have it from there send it instead.
//
// It ends. A member sends at most one message about an agreement to each parent that it ever has,
// and one answer to each of those, so there are finitely many. After the last failure is known to
// all, all see the same tree: each leaf has sent its message, so has each parent of those that
// have, and so has the root decided; each message is answered. No member waits for another
// one's program to call anything but this agreement.
//
// What does not hold: a member may return a result and fail, and so may all that it has told, and
// the others then decide on another one. Who needs more, because it has written to a disk what was
// agreed on, does so after a second agreement: when that has returned, all that live have returned
// from the first.
//
// TestModel goes through all orders of messages, failures and reports in small groups.
package agree
