package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"time"
)

// The alerts by which a peer reports that it does not accept us, RFC 8446, Error Alerts.
const (
	alertHandshakeFailure   = 40
	alertBadCertificate     = 42
	alertUnsupported        = 43
	alertRevoked            = 44
	alertExpired            = 45
	alertUnknownCertificate = 46
	alertUnknownCA          = 48
	alertAccessDenied       = 49
	alertProtocolVersion    = 70
	alertRequired           = 116
	alertNoProtocol         = 120
)

const otherProtocol = "the peer speaks another protocol there; it is no transport of this kind, or of another version"

var alerts = map[uint8]string{
	alertHandshakeFailure:   "the peer accepts nothing of what we offer",
	alertBadCertificate:     "the peer refuses our certificate: it is of another CA than the peer's, not for this use, or not of a site that the peer's setting peers names",
	alertUnsupported:        "the peer does not know the kind of our certificate",
	alertRevoked:            "the peer refuses our certificate as revoked",
	alertExpired:            "the peer refuses our certificate as expired or not valid yet: check the clock of the peer's machine, and of this one",
	alertUnknownCertificate: "the peer refuses our certificate",
	alertUnknownCA:          "the peer does not trust our CA: all sites of a job need certificates of one CA",
	alertAccessDenied:       "the peer denies us access",
	alertProtocolVersion:    "the peer does not speak TLS 1.3",
	alertRequired:           "the peer wants a certificate of us, and we showed none",
	alertNoProtocol:         otherProtocol,
}

// ExplainAlert returns the meaning of a peer's TLS alert, or "" if the alert is not about
// identities.
func (id *Identity) ExplainAlert(alert uint8) string {
	text := alerts[alert]
	if alert == alertBadCertificate || alert == alertUnknownCA || alert == alertExpired {
		if now := id.now(); now.After(id.leaf().NotAfter) {
			text = "the peer refuses our certificate, which expired on " + id.leaf().NotAfter.Format(time.RFC3339)
		}
	}
	return text
}

// Explain returns the meaning of an error of a TLS handshake, or "" if it is not about the two
// identities.
func (id *Identity) Explain(err error) string {
	var verify *tls.CertificateVerificationError
	var op *net.OpError
	var alert tls.AlertError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrPeer):
		return strings.TrimPrefix(err.Error()[strings.Index(err.Error(), ErrPeer.Error()):], ErrPeer.Error()+": ")
	case errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 0:
		return id.blame(verify.UnverifiedCertificates[0], verify.Err)
	case errors.As(err, &op) && op.Op == "remote error":
		return id.ExplainAlert(alertOf(op.Err))
	case strings.Contains(err.Error(), "didn't provide a certificate"):
		return "the peer showed no certificate"
	case strings.Contains(err.Error(), "unsupported application protocols"),
		strings.Contains(err.Error(), "did not select an ALPN protocol"):
		return otherProtocol
	case strings.Contains(err.Error(), "does not look like a TLS handshake"):
		return "the peer does not speak TLS: switch tls on there too, or off here"
	case errors.As(err, &alert):
		return id.ExplainAlert(uint8(alert))
	}
	return x509Text(err)
}

func x509Text(err error) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	if errors.As(err, &unknown) || errors.As(err, &invalid) {
		return err.Error()
	}
	return ""
}

// alertOf returns the number of an alert, of which crypto/tls exports only the text.
func alertOf(err error) uint8 {
	for n := range alerts {
		if tls.AlertError(n).Error() == err.Error() {
			return n
		}
	}
	return 0
}
