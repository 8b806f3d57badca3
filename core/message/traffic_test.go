package message

import "testing"

// TestSentTo counts messages, not packets, and to each peer apart.
func TestSentTo(t *testing.T) {
	p := newPair(t, Config{MaxData: 8, AckMark: 1, HiWater: 2})
	for range 3 {
		p.send(0, Standard, make([]byte, 30))
	}
	p.recv(1, make([]byte, 30))
	p.settle()
	if n := p.e[0].SentTo(1); n != 3 {
		t.Errorf("%d messages were sent, 3 were begun", n)
	}
	if n := p.e[1].SentTo(0); n != 0 {
		t.Errorf("the receiver has sent %d", n)
	}
	if n := p.e[0].SentTo(0); n != 0 {
		t.Errorf("%d went to itself", n)
	}
}
