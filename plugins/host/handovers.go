package host

import (
	"context"
	"fmt"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
)

// handovers matches descriptors with the calls that wait for them. A descriptor without a
// waiting call is closed.
type handovers struct {
	mu      sync.Mutex
	waiting map[uint64]*claim
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

func (i *instance) deliver(r handover.Record) {
	if !i.handovers.serve(r.Link, parcel{record: r}) {
		i.log.Warn("closed the descriptor of a link that is not being opened", "link", r.Link)
		r.Close()
	}
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
