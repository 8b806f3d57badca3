package host

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/support/relay"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

type opening struct {
	id          uint64
	pinned      []transports.DataPlane // empty: any
	op, address string                 // for errors
}

// open has the plugin choose a data plane for a link, and makes this side of it.
func (i *instance) open(ctx context.Context, o opening) (link.Link, error) {
	parcels, err := i.handovers.expect(o.id)
	if err != nil {
		i.stop(i.violation(err), 0)
		return nil, i.err
	}
	defer i.handovers.forget(o.id)
	req := &proto.OpenDataPlaneRequest{
		Call: i.call(ctx), LinkId: o.id, Modes: modes(o.pinned), Pinned: len(o.pinned) > 0,
		RingLayouts: []uint32{proto.RingLayout}, WakeMethods: []string{proto.WakeSocket}, RingBytes: ring.DefaultSize,
	}
	answer, err := i.rpc.OpenDataPlane(ctx, req)
	if err != nil {
		i.abandon(req.Call)
		return nil, i.broken(ctx, "OpenDataPlane", err)
	}
	if answer.GetError() != nil {
		return nil, answer.GetError().TransportError(i.cfg.Name, o.op, o.address)
	}
	if !slices.Contains(req.Modes, answer.GetMode()) {
		i.stop(i.violation(fmt.Errorf("link %d uses data plane %q, which was not asked for", o.id, answer.GetMode())), 0)
		return nil, i.err
	}
	from := i.newOrigin(o.id, answer)
	i.log.Trace("data plane", "link", o.id, "mode", from.Plane, "reason", from.Reason)
	if from.Plane == transports.PlaneGRPC {
		return i.pipe(o.id, from)
	}
	return i.claim(ctx, parcels, o, from)
}

func (i *instance) claim(ctx context.Context, parcels <-chan parcel, o opening, from Origin) (link.Link, error) {
	select {
	case p := <-parcels:
		return i.adopt(p, o, from)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-i.dead:
	}
	select { // the descriptors may have come before the instance ended
	case p := <-parcels:
		return i.adopt(p, o, from)
	default:
		return nil, i.err
	}
}

func (i *instance) adopt(p parcel, o opening, from Origin) (link.Link, error) {
	fail := func(code transports.Code, cause error) error {
		return &transports.Error{Transport: i.cfg.Name, Op: o.op, Address: o.address, Code: code,
			Retryable: code == transports.CodeResource, Reason: cause.Error(), Cause: cause}
	}
	if p.err != nil {
		return nil, fail(transports.CodeResource, p.err)
	}
	l, err := linkOf(p.record, from)
	if err != nil {
		return nil, fail(transports.CodeProtocol, err)
	}
	return l, nil
}

// mostRegion is the size of a region with rings of the size that was asked for, its header,
// and what procs have beside the rings.
const mostRegion = 2*ring.DefaultSize + 2*link.MaxFastBoxArea + 64<<10

// checkRegion checks that a plugin's region is not larger than what was asked for, and that
// all of it is allocated, so that it cannot use more of our memory, or of a proc's, when it
// is touched.
func checkRegion(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("region of a ring: %w", err)
	}
	if st.Size > mostRegion || st.Blocks*512 < st.Size {
		return fmt.Errorf("%w: %d bytes of which %d are allocated; at most %d, all allocated, were asked for",
			ring.ErrRegion, st.Size, st.Blocks*512, mostRegion)
	}
	return nil
}

// linkOf makes a link of a record and takes over its descriptors.
func linkOf(r handover.Record, from Origin) (link.Link, error) {
	plane, fds := from.Plane, r.FDs
	alone := r.Kind == handover.KindLink && (len(r.Preread) == 0 || plane == transports.PlaneFD)
	switch {
	case !alone:
	case plane == transports.PlaneFD && r.Mode == handover.ModeFD && len(fds) == 1:
		l, err := socket.New(fds[0], r.Preread)
		return socketLink{l, made{from}}, err
	case plane == transports.PlanePeerSHM && r.Mode == handover.ModePeerSHM && len(fds) == 2 && r.Side <= 1:
		l, err := ring.NewDetachable(fds[0], fds[1], int(r.Side))
		return memoryLink{l, made{from}}, err
	case plane == transports.PlaneRing && r.Mode == handover.ModeRing && len(fds) == 2 && r.Side <= 1:
		if err := checkRegion(fds[0]); err != nil {
			r.Close()
			return nil, err
		}
		l, err := relay.NewRing(fds[0], fds[1], int(r.Side), from.Transport)
		return relayedLink{l, made{from}}, err
	case plane == transports.PlaneRDMA && r.Mode == handover.ModeRDMA && len(fds) == 3:
		l, err := relay.NewRDMA(fds[0], fds[1], fds[2], from.Transport, nil)
		if err != nil {
			return nil, err
		}
		return relayedLink{l.Link, made{from}}, nil
	case plane == transports.PlaneStream && r.Mode == handover.ModeStream && len(fds) == 2:
		l, err := relay.NewStream(fds[0], fds[1], plane, from.Transport)
		return relayedLink{l, made{from}}, err
	}
	r.Close()
	return nil, fmt.Errorf("record of kind %d, mode %d, side %d with %d descriptors and %d bytes: not what data plane %s has",
		r.Kind, r.Mode, r.Side, len(fds), len(r.Preread), plane)
}
