package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/plugins/proto"
	"github.com/openimpi/impi/plugins/proto/handover"
	"github.com/openimpi/impi/transports"
)

// held is a link that waits for OpenDataPlane.
type held struct {
	link     link.Link
	listener uint64 // that accepted it; 0: dialled
}

// Dial has the transport dial and keeps the link.
func (s *server) Dial(ctx context.Context, req *proto.DialRequest) (*proto.DialResponse, error) {
	if e := s.beginDial(); e != nil {
		return &proto.DialResponse{Error: e}, nil
	}
	defer s.endDial()
	s.dials.Add(1)
	l, err := s.t.Dial(ctx, transports.DialSpec{Address: req.GetAddress(), From: req.GetFrom()})
	if l == nil && err == nil {
		err = errNoLink
	}
	if err != nil {
		s.dialErrors.Add(1)
		return &proto.DialResponse{Error: wireError(err)}, nil
	}
	select {
	case s.room <- struct{}{}:
		return &proto.DialResponse{LinkId: s.hold(l, 0)}, nil
	default:
		l.Close()
		s.dialErrors.Add(1)
		return &proto.DialResponse{Error: refusal(transports.CodeResource,
			fmt.Sprintf("%d links wait in the plugin for their node to open them", proto.MaxWaiting))}, nil
	}
}

// errNoLink blames a transport that returns neither a link nor an error.
var errNoLink = errors.New("the transport made no link and gave no error; report it to its vendor")

func (s *server) beginDial() *proto.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return refusal(transports.CodeResource, "the plugin is being stopped")
	}
	s.dialling++
	return nil
}

func (s *server) endDial() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialling--
	s.checkQuiet()
}

// hold keeps a link, for which there is room, until it is opened.
func (s *server) hold(l link.Link, listener uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID()
	s.links[id] = &held{link: l, listener: listener}
	return id
}

// release gives a held link up, or nil when there is none of that number.
func (s *server) release(id uint64) *held {
	s.mu.Lock()
	h := s.links[id]
	delete(s.links, id)
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	<-s.room
	s.events.settle(func(e *proto.Event) bool { return e.GetAccepted().GetLinkId() == id })
	return h
}

func (s *server) closeLink(id uint64) {
	if h := s.release(id); h != nil {
		h.link.Close()
	}
}

// CloseLink closes a link that waits.
func (s *server) CloseLink(_ context.Context, req *proto.CloseLinkRequest) (*proto.CloseLinkResponse, error) {
	s.closeLink(req.GetLinkId())
	return &proto.CloseLinkResponse{}, nil
}

// OpenDataPlane hands a link over by the first data plane of the node's that the
// link can do. Otherwise the link is closed.
func (s *server) OpenDataPlane(ctx context.Context, req *proto.OpenDataPlaneRequest) (*proto.OpenDataPlaneResponse, error) {
	h := s.release(req.GetLinkId())
	if h == nil {
		return opened(refusal(transports.CodeInternal, fmt.Sprintf("link %d does not wait here", req.GetLinkId())))
	}
	defer h.link.Close() // nothing, once it is detached
	plane, what, pack := packing(h.link)
	at := slices.Index(req.GetModes(), string(plane))
	switch {
	case pack == nil:
		return opened(refusal(transports.CodeUnsupported, fmt.Sprintf(
			"the link is neither a kernel socket, for data plane fd, nor shared memory, for peer-shm, and this plugin serves no other (the node can do %s)",
			strings.Join(req.GetModes(), ", "))))
	case at < 0:
		return opened(refusal(transports.CodeUnsupported, fmt.Sprintf(
			"the link is %s: it can do data plane %s, the node wants %s", what, plane, strings.Join(req.GetModes(), ", "))))
	}
	if err := s.handOver(ctx, req.GetLinkId(), pack); err != nil {
		return opened(wireError(err))
	}
	s.handedOver.Add(1)
	reason := what + ", and the node's first choice"
	if at > 0 {
		reason = what + "; the link cannot do " + strings.Join(req.GetModes()[:at], ", ")
	}
	return &proto.OpenDataPlaneResponse{Mode: string(plane), Reason: reason}, nil
}

// packing gives the data plane that a link can do, why, and how it is handed
// over; nil if there is none.
func packing(l link.Link) (transports.DataPlane, string, func() (*handover.Record, error)) {
	switch x := l.(type) {
	case transports.Socket:
		return transports.PlaneFD, "a kernel socket", func() (*handover.Record, error) {
			fd, preread, err := x.Detach()
			return &handover.Record{Mode: handover.ModeFD, Preread: preread, FDs: []int{fd}}, err
		}
	case transports.Memory:
		return transports.PlanePeerSHM, "memory shared with the peer", func() (*handover.Record, error) {
			region, socket, side, err := x.Detach()
			return &handover.Record{Mode: handover.ModePeerSHM, Side: uint32(side), FDs: []int{region, socket}}, err
		}
	}
	return "", "", nil
}

func opened(e *proto.Error) (*proto.OpenDataPlaneResponse, error) {
	return &proto.OpenDataPlaneResponse{Error: e}, nil
}

// handOver sends a link's descriptors to the node. No copy stays here.
func (s *server) handOver(ctx context.Context, id uint64, pack func() (*handover.Record, error)) error {
	r, err := pack()
	if err != nil {
		return fmt.Errorf("detach link %d: %w", id, err)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	r.Kind, r.Link = handover.KindLink, id
	return s.fds.Send(r, deadline)
}

func refusal(code transports.Code, reason string) *proto.Error {
	return &proto.Error{Code: string(code), Retryable: code == transports.CodeResource, Reason: reason}
}

// wireError classifies errors of the system and of contexts that a transport
// did not.
func wireError(err error) *proto.Error {
	var te *transports.Error
	switch {
	case errors.As(err, &te):
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return &proto.Error{Code: string(transports.CodeTimeout), Retryable: true, Reason: "no answer in time"}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ETOOMANYREFS),
		errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		return refusal(transports.CodeResource, err.Error())
	}
	return proto.FromError(err)
}
