package message

// SentTo counts the messages whose first packet has left for p, or waits to.
func (e *Engine) SentTo(p Peer) uint64 {
	if q := e.peers.find(p); q != nil {
		return q.sent
	}
	return 0
}
