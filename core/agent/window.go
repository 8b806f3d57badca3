package agent

import "github.com/openimpi/impi/core/wire"

// pair counts the packets between one local proc and one of another host that
// were passed on but not acknowledged, for both directions.
type pair struct{ in, out int64 }

type pairOf struct{ local, remote wire.WorldRank }

// windows has the counts of the pairs that have exchanged packets.
//
// A PROTOACK passes the agent before its receiver can act on it, and a packet passes after
// its sender has counted it. So a count here is never above the sender's own, and a sender
// that keeps the rule never makes it exceed hiWater.
//
// IMPI ch.3, Packet Protocol: the source stops at hiwater; each PROTOACK stands for exactly
// ackmark packets; the directions of a pair are independent.
type windows struct {
	ackMark, hiWater int64
	pairs            map[pairOf]*pair
	recent           []knownPair // by a hash; made with the first pair
}

type knownPair struct {
	of   pairOf
	pair *pair
}

func newWindows(ackMark, hiWater uint32) windows {
	return windows{ackMark: int64(ackMark), hiWater: int64(hiWater), pairs: make(map[pairOf]*pair)}
}

func (w *windows) pair(x pairOf) *pair {
	if w.recent == nil {
		w.recent = make([]knownPair, recents)
	}
	r := &w.recent[(uint32(x.local)*0x9e3779b1^uint32(x.remote)*0x85ebca6b)>>16%recents]
	if r.pair == nil || r.of != x {
		p := w.pairs[x]
		if p == nil {
			p = new(pair)
			w.pairs[x] = p
		}
		*r = knownPair{x, p}
	}
	return r.pair
}

// packet adds one packet to a count. It returns false if the window was full.
func (w *windows) packet(count *int64) bool {
	if *count >= w.hiWater {
		return false
	}
	*count++
	return true
}

// ack subtracts the packets that a PROTOACK stands for. Peers may acknowledge more than was counted
// here, so negative counts are allowed. It returns false if the count is a whole window below zero:
// the receiver of such a PROTOACK can do nothing with it, so it is dropped, since a peer could fill
// our memory with PROTOACKs for a proc that does not read.
func (w *windows) ack(count *int64) bool {
	if *count-w.ackMark < -w.hiWater {
		return false
	}
	*count -= w.ackMark
	return true
}
