package host

import (
	"context"
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/plugins/proto"
	"github.com/openimpi/impi/plugins/proto/handover"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/ring"
	"github.com/openimpi/impi/transports/socket"
)

// desk is where descriptors are claimed. One that nobody waits for is closed.
type desk struct {
	mu      sync.Mutex
	waiting map[uint64]*claim
}

// claim is somebody's wait for one link's descriptor.
type claim struct {
	served bool
	parcel chan parcel // room for one
}

// parcel is a link's record, or why it did not come.
type parcel struct {
	record handover.Record
	err    error
}

// expect announces that a descriptor for a link will be claimed.
func (d *desk) expect(id uint64) (<-chan parcel, error) {
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

// forget takes expect back. A descriptor that has come and was not claimed is
// closed.
func (d *desk) forget(id uint64) {
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

// serve hands a parcel to whoever waits for the link. It is false when nobody
// does, or was served before.
func (d *desk) serve(id uint64, p parcel) bool {
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

// deliver hands a record that came to whoever waits for it.
func (i *instance) deliver(r handover.Record) {
	if !i.desk.serve(r.Link, parcel{record: r}) {
		i.log.Warn("descriptor for a link that nobody opens, closed", "link", r.Link)
		r.Close()
	}
}

// open gets the descriptor of a link that the plugin holds, and makes a link of
// it.
func (i *instance) open(ctx context.Context, id uint64, op, address string) (link.Link, error) {
	parcels, err := i.desk.expect(id)
	if err != nil {
		i.stop(i.violation(err), 0)
		return nil, i.err
	}
	defer i.desk.forget(id)
	modes, pinned := i.cfg.modes()
	req := &proto.OpenDataPlaneRequest{Call: i.call(ctx), LinkId: id, Modes: modes, Pinned: pinned}
	answer, err := i.rpc.OpenDataPlane(ctx, req)
	if err != nil {
		i.abandon(req.Call)
		return nil, i.broken(ctx, "OpenDataPlane", err)
	}
	if answer.GetError() != nil {
		return nil, answer.GetError().TransportError(i.cfg.Name, op, address)
	}
	i.log.Trace("data plane", "link", id, "mode", answer.GetMode(), "reason", answer.GetReason())
	select {
	case p := <-parcels:
		return i.adopt(p, op, address)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-i.dead:
	}
	select { // it may have come before the end
	case p := <-parcels:
		return i.adopt(p, op, address)
	default:
		return nil, i.err
	}
}

// adopt makes a link of what a plugin sent.
func (i *instance) adopt(p parcel, op, address string) (link.Link, error) {
	fail := func(code transports.Code, cause error) error {
		return &transports.Error{Transport: i.cfg.Name, Op: op, Address: address, Code: code,
			Retryable: code == transports.CodeResource, Reason: cause.Error(), Cause: cause}
	}
	if p.err != nil {
		return nil, fail(transports.CodeResource, p.err)
	}
	l, err := linkOf(p.record)
	if err != nil {
		return nil, fail(transports.CodeProtocol, err)
	}
	return l, nil
}

// linkOf makes a link of a record, which it uses up.
func linkOf(r handover.Record) (link.Link, error) {
	switch {
	case r.Kind == handover.KindLink && r.Mode == handover.ModeFD && len(r.FDs) == 1:
		return socket.New(r.FDs[0], r.Preread)
	case r.Kind == handover.KindLink && r.Mode == handover.ModePeerSHM && len(r.FDs) == 2 && r.Side <= 1 && len(r.Preread) == 0:
		return ring.NewDetachable(r.FDs[0], r.FDs[1], int(r.Side))
	}
	r.Close()
	return nil, fmt.Errorf("record of kind %d, mode %d, side %d with %d descriptors and %d bytes: no data plane that was asked for",
		r.Kind, r.Mode, r.Side, len(r.FDs), len(r.Preread))
}

// abandon takes a request back whose answer nobody waits for any more. It does
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
