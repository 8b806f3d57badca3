// Package agent is an IMPI host (IMPI ch.2 and ch.3; docs/wire.md): the packet switch
// between one site's procs and the channels to all other hosts of the job, and the dance
// that sets these channels up. It is a pure machine: its driver reads and writes links and
// tells the agent what happened; the agent says which bytes go to which link and what else
// the driver must do.
//
// # Switching
//
// Bytes are read into chunks and are sent from the same memory: an output queue holds
// references to chunks, not copies. A packet is passed on when it has arrived completely
// (store and forward). Cutting through would save the latency of one packet, but a source
// that stops or dies in the middle of a packet would then block or ruin the stream of a
// destination that others send to.
//
// A destination that does not read blocks nobody else: its packets wait in its own queue.
// The windows of the proc pairs (IMPI ch.3, Packet Protocol) bound how many there can be,
// and the agent counts these windows for every foreign source: at most HiWater x (MaxData +
// 128) bytes per pair. A reference keeps a whole chunk, so a queue of n bytes may hold more
// memory than n, but never more than 2n and three chunks: once a queue does not drain,
// short runs are copied together, see queue.add. A link that is being read holds at most
// one packet and two chunks more.
//
// # Driving
//
// The driver's loop is: for a readable link, read into the memory of Input and call
// Received; write each link of GrownQueues with Output and Sent until the queue is empty or the
// link is full, and a full link again when it is writable; act on each event of Next.
// Reading never waits for writing: a proc or host whose packets cannot leave may still have
// sent a PROTOACK that others wait for. So Input is nil only for a link that is closed or
// whose peer broke the protocol.
//
// Before that, a Dance sets up the channels. It is a machine of its own. Channels says which of
// them are made later, when a packet needs them.
package agent
