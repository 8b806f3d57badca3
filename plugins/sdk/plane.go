package sdk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
)

// relayed are the data planes in which this process passes the bytes on.
var relayed = []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC}

// Extended returns the data planes of the links of a transport that declares some: a socket or a
// connection can also be relayed. A link of package fabric can only be opened by rdma and ring, so
// these two alone add nothing.
func Extended(declared []transports.DataPlane) []transports.DataPlane {
	planes := slices.Clone(declared)
	hasFabric := slices.Contains(declared, transports.PlaneRDMA)
	if slices.ContainsFunc(declared, func(p transports.DataPlane) bool {
		return p == transports.PlaneFD || slices.Contains(relayed, p) && !(hasFabric && p == transports.PlaneRing)
	}) {
		for _, p := range relayed {
			if !slices.Contains(planes, p) {
				planes = append(planes, p)
			}
		}
	}
	return planes
}

// planesOf returns what a link is, for messages, and the data planes that it supports.
func planesOf(l link.Link) (planes []transports.DataPlane, what string) {
	switch l.(type) {
	case transports.Socket:
		return append([]transports.DataPlane{transports.PlaneFD}, relayed...), "a kernel socket"
	case transports.Memory:
		return []transports.DataPlane{transports.PlanePeerSHM}, "memory shared with the peer"
	case transports.Piped:
		return relayed, "a connection inside the plugin"
	case *fabric.Link:
		return fabric.Planes(), "a connection that reads remote memory"
	}
	return nil, "neither a kernel socket (transports.Socket) nor shared memory (transports.Memory) nor a connection (transports.Piped, fabric.Link)"
}

// OpenDataPlane opens a link by the first of the node's data planes that the link supports.
// If there is none, it closes the link.
func (s *server) OpenDataPlane(ctx context.Context, req *proto.OpenDataPlaneRequest) (*proto.OpenDataPlaneResponse, error) {
	h, piped := s.links.get(req.GetLinkId())
	if h == nil || piped {
		return opened(refusal(transports.CodeInternal, fmt.Sprintf("link %d does not wait here", req.GetLinkId())))
	}
	plane, reason, refused := choose(h.link, req)
	if refused != nil {
		s.links.close(req.GetLinkId())
		return opened(refused)
	}
	answer := &proto.OpenDataPlaneResponse{Mode: string(plane), Reason: reason}
	gone := func() (*proto.OpenDataPlaneResponse, error) {
		return opened(refusal(transports.CodeInternal, fmt.Sprintf("link %d was closed meanwhile", req.GetLinkId())))
	}
	if plane == transports.PlaneGRPC {
		if !s.links.pipe(req.GetLinkId()) {
			return gone()
		}
		return answer, nil
	}
	if s.links.release(req.GetLinkId()) == nil {
		return gone()
	}
	defer h.link.Close() // has no effect once the link is detached
	var err error
	switch plane {
	case transports.PlaneRing:
		answer.RingLayout, answer.WakeMethod, answer.RingBytes = proto.RingLayout, proto.WakeSocket, ringBytes(req.GetRingBytes())
		err = s.pumpRing(ctx, req.GetLinkId(), h.link, int(answer.RingBytes))
	case transports.PlaneRDMA:
		answer.WakeMethod = proto.WakeSocket
		err = s.pumpRDMA(ctx, req.GetLinkId(), h.link)
	case transports.PlaneStream:
		err = s.pumpSocket(ctx, req.GetLinkId(), h.link)
	default:
		err = s.handOver(ctx, req.GetLinkId(), h.link)
	}
	if err != nil {
		return opened(wireError(err))
	}
	return answer, nil
}

func choose(l link.Link, req *proto.OpenDataPlaneRequest) (plane transports.DataPlane, reason string, refused *proto.Error) {
	can, what := planesOf(l)
	at := slices.IndexFunc(req.GetModes(), func(m string) bool {
		return slices.Contains(can, transports.DataPlane(m)) && (m != string(transports.PlaneRing) || ringFits(req)) &&
			(m != string(transports.PlaneRDMA) || slices.Contains(req.GetWakeMethods(), proto.WakeSocket))
	})
	wanted := strings.Join(req.GetModes(), ", ")
	if at < 0 {
		who := "the node can do"
		if req.GetPinned() {
			who = "the site's config allows"
		}
		return "", "", refusal(transports.CodeUnsupported, fmt.Sprintf("the link is %s: it can do %s; %s %s", what, planeList(can), who, wanted))
	}
	reason = "the link is " + what
	switch {
	case at > 0:
		reason += ", which cannot do " + strings.Join(req.GetModes()[:at], ", ")
	case req.GetPinned():
		reason += ", and the site's config wants " + wanted
	default:
		reason += ", which allows the best plane"
	}
	return transports.DataPlane(req.GetModes()[at]), reason, nil
}

func planeList(planes []transports.DataPlane) string {
	if len(planes) == 0 {
		return "no data plane"
	}
	names := make([]string, len(planes))
	for i, p := range planes {
		names[i] = string(p)
	}
	return "data plane " + strings.Join(names, ", ")
}

// ringFits reports whether the node supports the rings that this package makes.
func ringFits(req *proto.OpenDataPlaneRequest) bool {
	return slices.Contains(req.GetRingLayouts(), proto.RingLayout) && slices.Contains(req.GetWakeMethods(), proto.WakeSocket)
}

func opened(e *proto.Error) (*proto.OpenDataPlaneResponse, error) {
	return &proto.OpenDataPlaneResponse{Error: e}, nil
}

// handOver gives a link to the node, and keeps nothing of it.
func (s *server) handOver(ctx context.Context, id uint64, l link.Link) error {
	r, err := pack(l)
	if err != nil {
		return fmt.Errorf("detach link %d: %w", id, err)
	}
	if err := s.sendRecord(ctx, id, r); err != nil {
		return err
	}
	s.handedOver.Add(1)
	return nil
}

// pack takes the descriptors out of a link.
func pack(l link.Link) (*handover.Record, error) {
	if x, ok := l.(transports.Memory); ok {
		region, socket, side, err := x.Detach()
		return &handover.Record{Mode: handover.ModePeerSHM, Side: uint32(side), FDs: []int{region, socket}}, err
	}
	fd, preread, err := l.(transports.Socket).Detach()
	return &handover.Record{Mode: handover.ModeFD, Preread: preread, FDs: []int{fd}}, err
}

// sendRecord sends a link's descriptors to the node and closes them here.
func (s *server) sendRecord(ctx context.Context, id uint64, r *handover.Record) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	r.Kind, r.Link = handover.KindLink, id
	return s.fds.Send(r, deadline)
}
