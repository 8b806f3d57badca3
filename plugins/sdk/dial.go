package sdk

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Dial makes the transport dial and keeps the link until it is opened.
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
	id := s.nextID()
	if !s.links.holdDialled(id, l) {
		l.Close()
		s.dialErrors.Add(1)
		return &proto.DialResponse{Error: refusal(transports.CodeResource,
			fmt.Sprintf("%d links wait in the plugin for their node to open them", proto.MaxWaiting))}, nil
	}
	return &proto.DialResponse{LinkId: id}, nil
}

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

// CloseLink closes a link that was not opened yet.
func (s *server) CloseLink(_ context.Context, req *proto.CloseLinkRequest) (*proto.CloseLinkResponse, error) {
	s.links.close(req.GetLinkId())
	return &proto.CloseLinkResponse{}, nil
}

func refusal(code transports.Code, reason string) *proto.Error {
	return &proto.Error{Code: string(code), Retryable: code == transports.CodeResource, Reason: reason}
}

// wireError assigns a code to errors of the system and of contexts for which the transport
// has set none.
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
