package sdk

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/plugins/proto"
	"github.com/openimpi/impi/transports"
)

// held is a link that waits for OpenDataPlane.
type held struct {
	link     link.Link
	listener uint64 // that accepted it; 0: dialled
	piped    bool   // it was opened, in mode grpc, and waits for Pipe
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

// held gives a link that waits, or nil.
func (s *server) held(id uint64) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[id]
}

// isPiped tells whether a link waits for Pipe.
func (s *server) isPiped(h *held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.piped
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
	if h.listener != 0 {
		<-s.waiting
	}
	s.settleAccepted(id)
	return h
}

// settleAccepted forgets that the node was told of a link.
func (s *server) settleAccepted(id uint64) {
	s.events.settle(func(e *proto.Event) bool { return e.GetAccepted().GetLinkId() == id })
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
