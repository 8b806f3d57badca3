package quic

import (
	"errors"
	"fmt"
	"os"

	"github.com/quic-go/quic-go"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
)

// errSilent says that a handshake has not ended in the time that the dialler has.
var errSilent = errors.New("nobody answers there; a firewall may drop UDP")

func (s *settings) failure(op, address string, err error) *transports.Error {
	e := socket.Failure(name, op, address, err)
	if code, retry, reason := s.judge(err); reason != "" {
		e.Code, e.Retryable, e.Reason = code, retry, reason
	}
	return e
}

// judge classifies errors of the library. An empty reason means that it is not one.
func (s *settings) judge(err error) (code transports.Code, retry bool, reason string) {
	var te *quic.TransportError
	var ae *quic.ApplicationError
	var se *quic.StreamError
	var late *quic.HandshakeTimeoutError
	var reset *quic.StatelessResetError
	var version *quic.VersionNegotiationError
	switch {
	case errors.Is(err, errSilent): // or a handshake that is slow
		return transports.CodeTimeout, true, err.Error()
	case errors.As(err, &te):
		return s.judgeTransport(te)
	case errors.As(err, &ae) && ae.Remote:
		return judgeClose(ae)
	case heardNothing(err):
		return transports.CodeTimeout, true, fmt.Sprintf("no sign of life from the peer for %v", s.idle)
	case errors.As(err, &ae):
		return transports.CodeInternal, true, "the connection was closed here: " + closeReason(ae)
	case errors.As(err, &se) && se.Remote:
		return judgeReset(se)
	case errors.As(err, &late):
		return transports.CodeTimeout, true, errSilent.Error()
	case errors.As(err, &reset):
		return transports.CodeRefused, true, "the peer does not know the connection any more: its process was started anew"
	case errors.As(err, &version):
		return transports.CodeProtocol, false, "the peer does not speak QUIC version 1"
	case errors.Is(err, stripe.ErrGivenUp):
		return transports.CodeRefused, true, stripe.ErrGivenUp.Error()
	case errors.Is(err, errRules), errors.Is(err, stripe.ErrProtocol):
		return transports.CodeProtocol, false, err.Error()
	}
	return "", false, ""
}

func (s *settings) judgeTransport(te *quic.TransportError) (transports.Code, bool, string) {
	switch {
	case te.ErrorCode == quic.ConnectionRefused:
		return transports.CodeRefused, true, "nobody listens there any more, or the peer has too much to do"
	case te.ErrorCode.IsCryptoError() && te.Remote:
		if text := s.id.ExplainAlert(uint8(te.ErrorCode)); text != "" {
			return transports.CodeAuth, false, text
		}
	case te.ErrorCode.IsCryptoError():
		if text := s.id.Explain(te); text != "" {
			return transports.CodeAuth, false, text
		}
		if text := s.id.ExplainAlert(uint8(te.ErrorCode)); text != "" {
			return transports.CodeAuth, false, text
		}
	}
	return transports.CodeProtocol, false, te.Error()
}

func judgeClose(ae *quic.ApplicationError) (transports.Code, bool, string) {
	if ae.ErrorCode == closeRules {
		return transports.CodeProtocol, false, "the peer says that we broke the rules: " + closeReason(ae)
	}
	return transports.CodeRefused, true, closeReason(ae)
}

func closeReason(ae *quic.ApplicationError) string {
	switch {
	case ae.ErrorCode == closeUnused && ae.Remote:
		return "the peer closed the connection, which was not used"
	case ae.ErrorCode == closeEnds && ae.Remote:
		return "the peer's process ended"
	case ae.ErrorCode == closeEnds:
		return "this process ends"
	case ae.ErrorCode == closeSilent:
		return "the peer has heard nothing for too long, although it is heard"
	}
	return fmt.Sprintf("%q (code %d)", ae.ErrorMessage, ae.ErrorCode)
}

func judgeReset(se *quic.StreamError) (transports.Code, bool, string) {
	switch se.ErrorCode {
	case resetClosed:
		return transports.CodeRefused, true, "nobody listens there any more"
	case resetBusy:
		return transports.CodeResource, true, "too many links wait there to be accepted"
	case resetIdentity:
		return transports.CodeAuth, false, "the peer has new certificates and does not accept ours any more: all sites of a job need certificates of one CA"
	}
	return transports.CodeProtocol, false, se.Error()
}

// explain says what ended a link's bytes. It does not change deadline errors.
func (c *connection) explain(err error) error {
	var se *quic.StreamError
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case errors.As(err, &se) && se.Remote && se.ErrorCode == resetLost:
		return fmt.Errorf("%s at %s has lost bytes of the link: %w", name, c.qc.RemoteAddr(), err)
	case errors.As(err, &se) && se.Remote:
		return fmt.Errorf("%s at %s has closed the link: %w", name, c.qc.RemoteAddr(), err)
	}
	if heardNothing(err) {
		return fmt.Errorf("%w (%w)", &link.SilentError{Peer: fmt.Sprintf("%s %s", name, c.qc.RemoteAddr()), For: c.settings.idle}, err)
	}
	if _, _, reason := c.settings.judge(err); reason != "" {
		return fmt.Errorf("%s at %s: %s: %w", name, c.qc.RemoteAddr(), reason, err)
	}
	return fmt.Errorf("%s at %s: %w", name, c.qc.RemoteAddr(), err)
}

// heardNothing reports whether a connection has ended as its peer was silent: by our watch, or, where the
// peer wants a shorter idle timeout, by the library.
func heardNothing(err error) bool {
	var ae *quic.ApplicationError
	return errors.As(err, &ae) && !ae.Remote && ae.ErrorCode == closeSilent || errors.As(err, new(*quic.IdleTimeoutError))
}

// stale reports whether a connection had ended before the link was asked for, so that a new
// connection may work.
func stale(err error) bool {
	var ae *quic.ApplicationError
	var idle *quic.IdleTimeoutError
	var reset *quic.StatelessResetError
	var turned *quic.StreamError
	return errors.As(err, &ae) && ae.ErrorCode != closeRules || errors.As(err, &idle) || errors.As(err, &reset) ||
		errors.As(err, &turned) && turned.Remote && turned.ErrorCode == resetIdentity
}
