// Package board is memory that the procs of one host share for collective operations
// without messages, and its layout (docs/decisions/0023-a-board-for-each-host.md): each
// member writes its data where only it writes, and the others read them there. Nothing in
// this package waits; a Wait reports whether it is time to continue.
//
// # Layout
//
// Numbers are in the machine's byte order. Lines that different procs write are 128 bytes
// apart, two cache lines, since processors fetch them in pairs.
//
//	0      8  "impiboar"
//	8      4  version of the layout, 2
//	12     4  0x01020304
//	16     4  how many procs share the board
//	128    8  bit s: slot s is taken
//	4096      the slots, slotSize(procs) each; behind them, from a page on, the areas
//
// A slot is the place of one communicator. It begins with two lines, which members sleep (a
// bit for each) and how many have left, and has a part for each member:
//
//	0      8  how far the member is: a Step
//	8      8  the last Step in which it could not read what others lent
//	16     8  who they were, a bit for each
//	128       entries of 64 bytes: the Step that it belongs to, what it is and how
//	          long (8 bits, 56 bits), and the data if they fit, or where in the
//	          member's memory they are if it lends them
//
// Each member of each slot also has an area for data that do not fit into an entry: rooms
// for the short ones, one for each entry, and two halves for the long ones. Areas take no
// memory before they are used.
//
// # Steps
//
// All members number the operations of a communicator alike. A Step is an operation's
// number and a step of it; steps come in pairs, of which only the first may post. A member
// stores its step when it begins an operation, and when it has read all that it needs of a
// step. In both cases it has read all that it needs of everything before. So a member that
// wants to overwrite an entry knows from the others' steps whether they still have to read
// it.
//
// A member that lends memory waits until the others' steps say that they have read it. One that
// could not read it says so before it ends the step. Then the lender posts the same bytes in
// further steps of the operation, in pieces, for those that have asked.
//
// # Trust
//
// Any proc that shares the memory may have written what is in it. Nothing that is read
// there is used as an index, and lengths must be those that the reader expects. So a proc
// that breaks the rules can make results wrong or keep others waiting, as it can with
// messages, and no more.
package board
