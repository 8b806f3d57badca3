// Package check watches the bytes on the links of a simulated job and says when
// somebody breaks the protocol. It shares no code with what it watches: packets
// and commands are read from their byte offsets here, once more.
//
// A Checker is told of each link (Link), of the bytes that one end has written
// (Sent) and of how many of them the other end has read (Received). Where a link
// is resumed over several others, the bytes are those above the resumption, and
// Read instead of Received proves that the resumption works. The first violation
// is final: every later call returns it again.
//
// # Rules
//
//   - framing: a stream is packets, of known types and at most the data length;
//     it ends between two of them.
//   - address: pk_src and pk_dest are procs of the job and belong on the link.
//   - route: all packets from one proc to another leave by one link.
//   - fields: our own procs leave unused fields zero, and fill packets.
//   - window: no proc has more than HiWater packets on their way to another.
//   - ack: one PROTOACK for each AckMark counted packets that were read, none
//     before, and in the end exactly as many, but for procs that had gone.
//   - conservation: an agent passes on what it reads, whole, once, unchanged,
//     and in the order of each pair; only a PROTOACK may pass other packets.
//   - message: the parts of a long message come when they were asked for, say
//     the same and add up to its length.
//   - sync: a DATASYNC is answered by one SYNCACK, never unasked.
//   - cancel: a CANCEL names a synchronous or long message and is answered once;
//     CANCELYES excludes SYNCACK.
//   - fini: FINI goes once each way between hosts, when all procs of the host
//     have finished; after it nothing. Who saw it, or the end of a proc, sends there
//     nothing but PROTOACKs.
//   - dance: the host of higher rank says its rank first.
//   - startup: the dialogues with the server have the right form and order, and
//     the server answers when it may, to all, what the clients sent.
//   - label: labels ascend, have the size and value that the job gives them, and ours
//     are beyond IMPI 0.0 only if every client lists the private version.
//   - memory: see Memory.
//   - wiring: the simulator contradicts itself.
//
// # Faults
//
// A stream that is cut loses its tail and nothing else, and what an agent throws
// away because a link is gone is the tail of the pairs that need it. So Cut and
// Crashed relax no rule while the job runs: there are never gaps, doubles or
// packets out of order. They only excuse, in Finish, what did not arrive by a way that
// had a cut link in it.
package check
