package message

import "github.com/openimpi/impi/core/wire"

// ids gives requests the numbers that travel as pk_srqid and pk_drqid. A number
// is an index and a generation, so that one which comes back late or was
// invented finds nothing. Zero is never given: it means that there is no request.
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

// drop takes the number of r away, if it has one.
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
