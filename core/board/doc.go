// Package board is memory that the procs of one host share, and what is written
// where in it, so that a collective operation of theirs takes no messages: each
// member writes what it has to say where only it writes, and the others look there.
// Nothing in this package waits; a Wait reports whether it is time to go on.
//
// # Layout
//
// Numbers are in the machine's byte order. Each line that different procs write is
// apart from the others by 128 bytes, two cache lines, as processors fetch them in
// pairs.
//
//	0      8  "impiboar"
//	8      4  version of the layout, 1
//	12     4  0x01020304
//	16     4  how many procs share the board
//	128    8  bit s: slot s is taken
//	4096      the slots, slotSize(procs) each; behind them, from a page on, the areas
//
// A slot is the place of one communicator. It begins with two lines, who sleeps (a
// bit for each member) and how many members have left, and has a part for each:
//
//	0      8  how far the member is: a Turn
//	128       entries of 64 bytes: the Turn that it belongs to, what it is and how
//	          long (8 bits, 56 bits), and the data if they fit
//
// Each member of each slot has an area besides, for data that do not fit: rooms
// for the short ones, one for each entry, and two halves for the long ones. Areas take no
// memory before they are used.
//
// # Turns
//
// Operations of a communicator are numbered by all members alike. A Turn is an
// operation's number and a step of it; steps come in pairs, of which the first may post. A member writes its turn when it begins an
// operation and when it has taken all that it wants of the step, and in both cases
// has taken all that it wanted of everything before. So who wants to write over
// something knows from the others' turns whether they have still to read it.
//
// # Trust
//
// What is in the memory may have been written by anybody who shares it. Nothing
// read there is used as an index, and lengths have to be those that the
// reader expects. So a proc that breaks the rules can make the others' results wrong or
// keep them waiting, as it can with messages, and no more.
package board
