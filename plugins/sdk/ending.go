package sdk

import (
	"context"
	"errors"
	"io"
)

// A transport whose connections live in this process may have bytes of links that
// were closed, and peers that should be told of the process's end. It says so by
// methods that the contract does not have:
//
//	Drain(context.Context) error  waits until the peers have those bytes
//	Close() error                 ends all connections and listeners

func (s *server) drainTransport(ctx context.Context) {
	if t, ok := s.t.(interface{ Drain(context.Context) error }); ok {
		if err := t.Drain(ctx); err != nil && !errors.Is(err, context.Canceled) {
			Logger().Warn("bytes of closed links are still under way", "error", err)
		}
	}
}

func (s *server) closeTransport() {
	if t, ok := s.t.(io.Closer); ok {
		if err := t.Close(); err != nil {
			Logger().Warn("the transport did not end in order", "error", err)
		}
	}
}
