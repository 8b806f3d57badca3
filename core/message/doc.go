// Package message is the point-to-point engine of one proc: it turns sends and receives
// into IMPI packets and packets into finished requests.
//
// The engine only computes. It has no sockets, no clock and no goroutine, and it never
// blocks. Its driver owns the links and the lock and moves the bytes:
//
//	for each link l:
//	    if e.HasOutput(l) { n := write(e.Output(l)); e.Sent(l, n) }
//	    n := read(e.Input(l)); err := e.Received(l, n)
//
// Between Input and Received, and between Output and Sent, of one link, no other method may
// be called: other calls may move the memory that the slices refer to.
//
// Bytes are copied as little as possible. A message up to Config.StageLimit goes through
// the link's staging memory, so that many of them leave in one write and each is complete
// at once. Anything larger leaves from the user's buffer, and a payload whose receive is
// posted is read into the user's buffer.
//
// A peer that breaks the protocol makes Received fail with a *ProtocolError. It cannot make
// the engine panic or allocate memory for a length that it only announces: memory is
// allocated for data that has come. How much memory unexpected messages may take is agreed
// on with peers that know of allowances
// (docs/decisions/0035-unexpected-messages-are-bounded.md); those of other peers are kept
// without a limit.
package message
