package agent

import "github.com/openimpi/impi/core/wire"

// pair counts the packets between one local proc and one of another host that
// were passed on but not acknowledged, for both directions.
type pair struct{ in, out int64 }

// windows has the counts of all pairs. A row, for one local proc and one host, is allocated
// with its first packet.
//
// A PROTOACK passes the agent before its receiver can act on it, and a packet passes after
// its sender has counted it. So a count here is never above the sender's own, and a sender
// that keeps the rule never makes it exceed hiWater.
//
// IMPI ch.3, Packet Protocol: the source stops at hiwater; each PROTOACK stands for exactly
// ackmark packets; the directions of a pair are independent.
type windows struct {
	ackMark, hiWater int64
	hosts            int
	rows             [][]pair // local proc x host
}

func (w *windows) pair(local int, host wire.HostRank, index, size int) *pair {
	row := &w.rows[local*w.hosts+int(host)]
	if *row == nil {
		*row = make([]pair, size)
	}
	return &(*row)[index]
}

// packet counts one packet. It returns false if the window was full.
func (w *windows) packet(count *int64) bool {
	if *count >= w.hiWater {
		return false
	}
	*count++
	return true
}

// ack subtracts the packets that a PROTOACK stands for. Peers may acknowledge more than was
// counted here, so negative counts are allowed. It returns false if the source is a whole
// window ahead already. Such a PROTOACK is of no use to it and is dropped: passing them on
// to a proc that does not read would let a peer fill our memory.
func (w *windows) ack(count *int64) bool {
	if *count-w.ackMark < -w.hiWater {
		return false
	}
	*count -= w.ackMark
	return true
}
