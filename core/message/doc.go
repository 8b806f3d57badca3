// Package message is the point-to-point engine of one proc: it turns sends and
// receives into IMPI packets and packets into finished requests.
//
// The engine computes and does nothing else. It has no sockets, no clock and no
// goroutine; it never blocks. Its driver owns the links and the lock and moves
// the bytes:
//
//	for each link l:
//	    if e.HasOutput(l) { n := write(e.Output(l)); e.Sent(l, n) }
//	    n := read(e.Input(l)); err := e.Received(l, n)
//
// Between Input and Received, and between Output and Sent, of one link, no other
// method may be called: both pairs talk about slices that other calls move.
//
// Bytes are copied as little as can be. A message up to Config.StageLimit goes
// through the link's staging memory, so that many of them leave in one write and
// each is complete at once. Anything larger leaves from the user's buffer, and a
// payload whose receive is posted is read into the user's buffer.
//
// A peer that breaks the protocol makes Received fail with a *ProtocolError. It
// cannot make the engine panic, nor make it allocate for a length that it only
// announces: memory is taken for data that comes. How much there may be of messages that
// nobody has asked for is agreed on with peers that know of allowances; those of others
// are kept as they come.
package message
