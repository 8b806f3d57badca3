package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

const (
	protocolName = "impi-tcp/1" // ALPN
	// welcome is the first byte that the accepting side sends. In TLS 1.3 the dialler's
	// handshake ends before its certificate was checked, so it waits for this byte.
	welcome = 1
	// handshakeTime bounds the peer's part of a handshake.
	handshakeTime = 10 * time.Second
)

// secureDial makes a dialled connection one of TLS. It closes it after an error.
func (s *settings) secureDial(ctx context.Context, raw *net.TCPConn, address string) (transports.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	c, err := s.handshake(ctx, raw, func(raw net.Conn) *tls.Conn { return tls.Client(raw, s.id.Client(protocolName)) })
	if err == nil {
		var answer [1]byte
		err = conn.Within(ctx, c, func() error {
			if _, err := io.ReadFull(c, answer[:]); err != nil {
				return err
			}
			if answer[0] != welcome {
				return fmt.Errorf("the peer began with %d, not with %d", answer[0], welcome)
			}
			return nil
		})
	}
	if err != nil {
		drop(c, raw)
		return nil, s.failure("dial", address, err)
	}
	return c, nil
}

// secureAccept makes a TLS connection of an accepted connection, and closes raw if it cannot.
func (s *settings) secureAccept(ctx context.Context, raw *net.TCPConn, address string) (transports.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	c, err := s.handshake(ctx, raw, func(raw net.Conn) *tls.Conn { return tls.Server(raw, s.id.Server(protocolName)) })
	if err == nil {
		err = conn.Within(ctx, c, func() error {
			_, err := c.Write([]byte{welcome})
			return err
		})
	}
	if err != nil {
		drop(c, raw)
		return nil, s.turnedAway(raw, address, err)
	}
	return c, nil
}

func (s *settings) turnedAway(c net.Conn, address string, err error) *transports.Error {
	e := s.failure("accept", address, err)
	e.Retryable = true
	e.Reason = fmt.Sprintf("%s was turned away: %s", c.RemoteAddr(), e.Reason)
	return e
}

// drop closes a connection that has failed; its error is reported elsewhere.
func drop(c *tls.Conn, raw *net.TCPConn) {
	if c != nil {
		_ = c.NetConn().Close()
	}
	_ = raw.Close()
}

func (s *settings) handshake(ctx context.Context, raw *net.TCPConn, secure func(net.Conn) *tls.Conn) (*tls.Conn, error) {
	if err := s.tuneConn(raw); err != nil {
		return nil, err
	}
	c := secure(socket.Heed(raw))
	return c, c.HandshakeContext(ctx)
}

func (s *settings) failure(op, address string, err error) *transports.Error {
	e := socket.Failure(name, op, address, err)
	if s.id == nil {
		return e
	}
	if reason := s.id.Explain(err); reason != "" {
		e.Code, e.Retryable, e.Reason = transports.CodeAuth, false, reason
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		e.Code, e.Retryable = transports.CodeProtocol, true
		e.Reason = "the peer hung up in the handshake; perhaps it has tls off"
	}
	return e
}
