package message

import "github.com/openimpi/impi/core/wire"

// ids gives requests the numbers that are sent as pk_srqid and pk_drqid. A pk_srqid must be unique
// among a proc's active requests (IMPI ch.3, Packet Format). A number consists of an index and a
// generation, so that an old or invented number finds nothing. Zero stands for no request and is
// never given.
type ids struct {
	first uint64
	slots []idSlot
	free  []uint32
}

type idSlot struct {
	req *Request
	gen uint32
}

func (t *ids) add(r *Request) {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, idSlot{})
	}
	s := &t.slots[i]
	s.req = r
	r.id = wire.RequestID(t.first + (uint64(s.gen)<<32 | uint64(i)))
}

func (t *ids) find(id wire.RequestID) *Request {
	v := uint64(id) - t.first
	if i := uint32(v); uint64(i) < uint64(len(t.slots)) && t.slots[i].gen == uint32(v>>32) {
		return t.slots[i].req
	}
	return nil
}

func (t *ids) drop(r *Request) {
	if r.id == 0 {
		return
	}
	i := uint32(uint64(r.id) - t.first)
	t.slots[i].req = nil
	t.slots[i].gen++
	t.free = append(t.free, i)
	r.id = 0
}
