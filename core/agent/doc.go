// Package agent is an IMPI host: the packet switch between one site's procs and
// the channels to all other hosts of the job, and the dance by which those
// channels come to be. It is a pure machine. Its driver reads and writes links
// and tells the agent what happened; the agent says where bytes go and what the
// driver must do about the rest.
//
// # Switching
//
// Bytes are read into chunks and leave from the same memory: an output queue
// holds references to chunks, not copies. A packet is passed on when it has
// arrived completely (store and forward). Cutting through would save one packet
// time of latency, but a source that stops or dies in the middle of a packet
// would then hold, or ruin, the stream of a destination that others send to.
//
// One destination that does not read stops nobody: its packets wait in its own
// queue. How many there can be is bounded by the windows of the proc pairs
// (IMPI ch.3, Packet Protocol), which the agent counts along for every foreign
// source: at most HiWater x (MaxData + 128) bytes per pair. References keep
// whole chunks, so a queue of n bytes may hold more memory than n, but never more
// than 2n and three chunks: short runs are copied together once a queue does not
// drain, see queue.add. A link that is being read holds at most one packet and
// two chunks more.
//
// # Driving
//
// An Agent is for one goroutine. The loop is: for a readable link, read into
// Input and say so to Received; flush each link of Touched with Output and Sent
// until it is empty or full, and a full one again when it is writable; act on each
// event of Next. Reading never waits for writing: a proc or host whose packets
// cannot leave may still have a PROTOACK to say that others wait for. So Input is
// nil only for a link that is closed or whose peer broke the protocol.
//
// Before that, a Dance makes the channels. It is a machine of its own.
package agent
