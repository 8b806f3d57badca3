package message

// SentTo counts the messages whose first packet has left for p, or waits to.
func (e *Engine) SentTo(p Peer) uint64 {
	q := e.peers.find(p)
	switch {
	case q == nil:
		return 0
	case q.fastBoxes != nil:
		return q.sent + q.fastBoxes.boxes.FastBoxesSent()
	}
	return q.sent
}

// Waiting counts the messages that wait for a receive, and the receives that wait
// for a message.
func (e *Engine) Waiting() (messages, receives int) {
	for range e.unexpected.All() {
		messages++
	}
	for range e.posted.All() {
		receives++
	}
	return messages, receives
}
