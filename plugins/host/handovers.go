package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
)

// handovers matches descriptors with the calls that wait for them. A descriptor without a
// waiting call is closed.
type handovers struct {
	mu      sync.Mutex
	waiting map[uint64]*claim
	strays  int       // descriptors that nobody waited for, since told
	told    time.Time // when they were last reported
}

type claim struct {
	served bool
	parcel chan parcel // room for one
}

// parcel is a link's record, or the error if it did not come.
type parcel struct {
	record handover.Record
	err    error
}

func (d *handovers) expect(id uint64) (<-chan parcel, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[id] != nil {
		return nil, fmt.Errorf("link %d was given out twice", id)
	}
	if d.waiting == nil {
		d.waiting = make(map[uint64]*claim)
	}
	c := &claim{parcel: make(chan parcel, 1)}
	d.waiting[id] = c
	return c.parcel, nil
}

// forget cancels expect. A descriptor that has come and was not claimed is closed.
func (d *handovers) forget(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.waiting[id]
	delete(d.waiting, id)
	select {
	case p := <-c.parcel:
		p.record.Close()
	default:
	}
}

// serve gives a parcel to the call that waits for the link. It returns false if no call
// waits, or if it has been served before.
func (d *handovers) serve(id uint64, p parcel) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.waiting[id]
	if c == nil || c.served {
		return false
	}
	c.served = true
	c.parcel <- p
	return true
}

// tellStrays is the minimum interval between two lines about descriptors that nobody waits for.
const tellStrays = 10 * time.Second

func (i *instance) deliver(r handover.Record) {
	if i.handovers.serve(r.Link, parcel{record: r}) {
		return
	}
	if n := i.handovers.stray(time.Now()); n > 0 {
		i.log.Warn("closed the descriptor of a link that is not being opened, or not any more", "link", r.Link, "descriptors", n)
	}
	r.Close()
}

// stray counts a descriptor that nobody waits for. It returns how many there were since it last did,
// or 0 if that was not long ago: calls that have given up may be many.
func (d *handovers) stray(now time.Time) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.strays++
	if now.Sub(d.told) < tellStrays {
		return 0
	}
	n, d.strays, d.told = d.strays, 0, now
	return n
}

// abandon tells the plugin that nobody waits for the answer to a request any more. It does
// not block.
func (i *instance) abandon(request *proto.Call) {
	i.aside(func(ctx context.Context) {
		_, _ = i.rpc.Abandon(ctx, &proto.AbandonRequest{Call: i.call(ctx), Key: request.GetKey()})
	})
}

// closeLink closes a link that the plugin holds. It does not block.
func (i *instance) closeLink(id uint64) {
	i.aside(func(ctx context.Context) {
		_, _ = i.rpc.CloseLink(ctx, &proto.CloseLinkRequest{Call: i.call(ctx), LinkId: id})
	})
}
