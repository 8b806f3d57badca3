// Package identity is who a site is and whom it trusts, for transports that speak
// TLS: the settings for it, the files behind them, mutual verification by one
// certificate authority, and sentences for operators about what went wrong.
package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrPeer is wrapped by the errors of a handshake that failed because this side
// does not accept the peer's certificate. Their text is for the operator.
var ErrPeer = errors.New("peer not accepted")

// Identity is a site's certificate and key, and the authority that has signed
// those of all sites of the job. It does not change.
type Identity struct {
	own      tls.Certificate
	leaf     *x509.Certificate
	trusted  *x509.CertPool
	caFile   string
	certFile string
	peers    []string // names of which a peer's certificate must have one; nil: any
	now      func() time.Time
}

// Name is what the site's certificate calls it.
func (id *Identity) Name() string { return nameOf(id.leaf) }

// Expires is when the site's certificate ceases to be valid.
func (id *Identity) Expires() time.Time { return id.leaf.NotAfter }

// Server is the TLS configuration of the side that accepts. protocol is the ALPN
// name that both sides must give.
func (id *Identity) Server(protocol string) *tls.Config {
	c := id.config(protocol)
	// The standard library verifies the client and tells it by the alert what was
	// wrong; our own checks come after that.
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.ClientCAs = id.trusted
	c.VerifyConnection = func(s tls.ConnectionState) error { return id.admit(s.PeerCertificates[0]) }
	return c
}

// Client is the TLS configuration of the side that dials.
func (id *Identity) Client(protocol string) *tls.Config {
	c := id.config(protocol)
	// Certificates name sites, addresses do not: the standard library would look for
	// the address in the certificate. So the verification is ours, all of it.
	c.InsecureSkipVerify = true
	c.VerifyConnection = id.verifyServer
	return c
}

// config is what both sides have in common. Tickets would only save the check of
// a certificate that may have expired meanwhile.
func (id *Identity) config(protocol string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{id.own},
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true,
		Time:                   id.now,
	}
}

// verifyServer is what the standard library would do, but for the name.
func (id *Identity) verifyServer(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return fmt.Errorf("%w: it showed no certificate", ErrPeer)
	}
	return id.verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth)
}

// verify judges a certificate, behind which those are that lead to its authority.
func (id *Identity) verify(chain []*x509.Certificate, use x509.ExtKeyUsage) error {
	options := x509.VerifyOptions{
		Roots: id.trusted, Intermediates: x509.NewCertPool(), CurrentTime: id.now(),
		KeyUsages: []x509.ExtKeyUsage{use},
	}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	leaf := chain[0]
	if _, err := leaf.Verify(options); err != nil {
		return fmt.Errorf("%w: %s", ErrPeer, id.blame(leaf, err))
	}
	return id.admit(leaf)
}

// Accepts tells why this side would not accept another, whether it dials or is dialled; nil:
// it would. The error is one of ErrPeer.
func (id *Identity) Accepts(other *Identity) error {
	chain := []*x509.Certificate{other.leaf}
	for _, der := range other.own.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			chain = append(chain, c)
		}
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err := id.verify(chain, use); err != nil {
			return err
		}
	}
	return nil
}

// admit judges the name of a certificate that is otherwise in order.
func (id *Identity) admit(leaf *x509.Certificate) error {
	if id.peers == nil || slices.ContainsFunc(id.peers, func(p string) bool { return slices.Contains(leaf.DNSNames, p) }) {
		return nil
	}
	return fmt.Errorf("%w: its certificate is that of %s, and the setting peers allows %s only",
		ErrPeer, describe(leaf), strings.Join(id.peers, ", "))
}

// blame says why a certificate was not verified.
func (id *Identity) blame(leaf *x509.Certificate, err error) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	now := id.now()
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate of %s was not signed by the CA in %s: all sites of a job need certificates of one CA",
			describe(leaf), id.caFile)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.After(leaf.NotAfter):
		return fmt.Sprintf("the certificate of %s expired on %s", describe(leaf), leaf.NotAfter.Format(time.RFC3339))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %s is valid from %s on, and it is %s here: compare the clocks",
			describe(leaf), leaf.NotBefore.Format(time.RFC3339), now.Format(time.RFC3339))
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return fmt.Sprintf("the certificate of %s is not for this use: it needs the extended key usages of a server and of a client", describe(leaf))
	}
	return fmt.Sprintf("the certificate of %s: %v", describe(leaf), err)
}

// nameOf is the site's name in a certificate.
func nameOf(c *x509.Certificate) string {
	if len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

func describe(c *x509.Certificate) string { return fmt.Sprintf("%q", nameOf(c)) }

// Secret is a number that only who has the site's key can know, for keys that are
// derived from it. It is the same for all processes of the site.
func (id *Identity) Secret() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(id.own.PrivateKey)
	if err != nil {
		panic("identity: a key that was parsed cannot be written: " + err.Error())
	}
	sum := sha256.Sum256(append([]byte("impi site secret "), der...))
	return sum[:]
}

// At returns the same identity with another clock.
func (id *Identity) At(now func() time.Time) *Identity {
	other := *id
	other.now = now
	return &other
}
