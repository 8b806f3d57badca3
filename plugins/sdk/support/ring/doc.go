// Package ring is a link through memory that two processes share: a pair of rings, one for
// each direction, and a socket. While both sides are busy, bytes pass without a system
// call. The socket wakes a side that sleeps, and shows the death of the other side, which
// memory cannot. docs/plugin-protocol.md has the same layout for other languages.
//
// # The region
//
// All numbers have the machine's byte order: both sides are on it. The region is
// a memfd that can neither shrink nor grow (F_SEAL_SHRINK, F_SEAL_GROW and
// F_SEAL_SEAL are set by its maker and checked by whoever is given it).
//
//	offset  bytes  what
//	     0      8  magic "impiring"
//	     8      4  layout version: 1
//	    12      4  0x01020304
//	    16      8  feature bits, which the other side may ignore: 0
//	    24      8  size of each ring's data in bytes, a power of two from 4096 to 2^30
//	    32      8  the offset of the data of ring 0; that of ring 1 follows it at once
//	    40      8  the offset of the fast-box messages of ring 0, 8192 bytes, behind all data; those of ring 1
//	               follow them at once; 0: none
//	    48      8  the offset of the memory for longer data of the fast-box messages of ring 0, behind
//	               all fast boxes; that of ring 1 follows it at once; 0: none
//	    56      8  the size of that memory of each ring in bytes, a power of two from 128 to 2^17
//	  1024   1024  control block of ring 0: side 0 writes, side 1 reads
//	  2048   1024  control block of ring 1: side 1 writes, side 0 reads
//	  3072    512  loans of ring 0
//	  3584    512  loans of ring 1
//
// A control block, in lines of 128 bytes so that two sides never write to one
// line, or to one that the processor fetches along with it:
//
//	  +0      8  head: bytes written since the beginning; the writer's
//	+128      8  tail: bytes read since the beginning; the reader's
//	+256      4  reader sleeps: 1 while the reader wants to be woken
//	+384      4  writer sleeps: 1 while the writer wants to be woken
//	+512      4  ended: 1 when the writer writes no more
//	+640      4  gone: 1 when the reader reads no more
//	+768      8  lent: loans since the beginning; this and the rest of the line are the writer's
//	+776      4  lends: 1 once what follows holds
//	+780      4  recalled: 1 once nothing lent may be used any more
//	+784      4  pid: the writer's process
//	+792      8  the address of a key in its memory
//	+800     16  the key
//	+896      8  taken: loans taken since the beginning; the reader's, as is
//	+904      4  takes: 1 once the reader has found that it can read the writer's memory
//	+908      4  takes fast-box messages: not 0 once the reader looks for fast-box messages; 2: for those
//	             with longer data, too
//	+912      8  noted: fast-box messages taken since the beginning; the reader's
//
// Byte number n of a direction is at n modulo size of the data. A writer copies bytes in,
// then stores head; a reader loads head, then copies bytes out, then stores tail. Stores of
// head, tail, ended and gone are releases, loads of them acquires. head - tail, modulo
// 2^64, is at most size; a side that sees anything else ends the link. A reader may store
// tail late by up to an eighth of size, but not when it sleeps.
//
// # Lending
//
// A side that does not implement this section leaves its words 0; then nothing is lent.
//
// A writer need not copy a long piece of the stream into the ring. It can lend it:
// say where in its own memory the piece lies, for the reader to take it from there
// with process_vm_readv(2). A loan has 32 bytes: a position, an address, a length
// from 1 to 2^30, and 8 bytes unused. The piece comes after the ring's first
// position bytes, counted as head is, and does not itself count there. Loan number
// n, from 0, is at place n modulo 16 of the table; lent - taken is at most 16. A
// writer stores loan, then lent, then the head that covers bytes behind it, each
// a release; a reader looks at head before it looks at lent.
//
// The writer must not change the memory until taken says that all of it was taken. A writer
// that needs it back earlier stores 1 into recalled and ends the link. The reader checks
// recalled after each copy, and if it is set discards what it copied.
//
// Whether that is possible has to be tested first, because the pid may belong to another
// name space and the kernel may forbid it. A writer that is ready to lend puts a random key
// into its memory, and its pid, the key's address and the key into its block, and stores
// lends. A reader that wants to borrow reads the key from the process's memory. If it is
// the same, the reader stores takes; without that nothing is lent. The reader reads the key
// again with each piece, since the pid may belong to another process by then. Only the two
// processes that use the link to its end do this, not one that hands it on.
//
// # Fast-box messages
//
// A side that does not implement this section leaves its words 0, and gets no fast-box
// messages. A region whose word at offset 40 is 0 has none.
//
// A fast-box message is a short message beside the bytes, whose envelope its users understand: see
// plugins/sdk/link. It has a place of 128 bytes, a multiple of 128 from the beginning:
//
//	 +0      8  mark: the fast-box message's number, from 1, in the upper 32 bits, and in the lower
//	            ones after how many bytes of the ring it comes, both modulo 2^32
//	 +8      8  context
//	+16      4  rank of the sender
//	+20      4  tag
//	+24      4  length of the data
//	+28      4  kind of the data, for information
//	+32     96  data if there are at most 96 bytes, else in 4 bytes their offset in the memory for
//	            longer data, and in 4 bytes, if they are more than 16384, how many have been written:
//	            these may follow the mark, and the message has arrived when all have been written
//
// Fast-box message number n is at place (n-1) modulo 64. A writer writes none before it has
// seen "takes fast-box messages", nor while anything is lent or reserved. It fills in the
// place and then stores the mark, a release and sequentially consistent. n - noted is at
// most 64; while noted has any other value the writer writes no fast-box messages. It wakes
// the reader as after a store of head.
//
// A reader loads the mark of the next fast-box message, an acquire, after it has loaded
// head and before it reads bytes, and after it has loaded lent and before it takes a loan.
// If that mark has the next number, the reader may read the bytes of the ring up to its
// position; beyond that it takes nothing, loans included, before the fast-box message. A
// position that is more than size after what was read ends the link. The reader copies what
// it wants of a fast-box message once, and then counts it; it may store noted, a release,
// late by up to 15, or by less than an eighth of the memory for longer data. No message
// has data of more than half of that memory, and those of a message that noted does not
// count are not overwritten.
//
// # Sleeping
//
// A reader that wants to sleep stores 1 into "reader sleeps", checks once more whether
// there is something (sequentially consistent: the store must not be reordered with the
// load), and then waits until the socket is readable. After storing head, a mark, lent or
// ended the writer loads that word; if it is 1 and the writer changes it to 0 (compare and
// swap), it sends a byte on the socket, unless that is full.
//
// A writer that wants to sleep sends bytes until the socket takes no more, stores 1 into
// "writer sleeps", checks once more whether a quarter of the ring is free or, if it has
// lent something, whether any of that was taken, and then waits until the socket is
// writable. The reader loads that word after storing taken, and after storing tail if a
// quarter is free; if it changes the word from 1 to 0, it reads the socket until it is
// empty.
//
// The bytes on the socket have no content. Each side reads all of them before a sleep, and
// may do so at any other time. The end of the socket means that the other side has died or
// closed the link. What is in the ring can still be read; after that the link is broken,
// unless "ended" is set.
package ring
