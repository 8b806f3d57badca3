// Package identity has what transports with TLS need to know who a site is and whom it
// trusts: the settings, the files that they name, mutual verification by one certificate
// authority, and messages for operators.
package identity

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// ErrPeer is wrapped by the error of a handshake in which this side does not accept the
// peer's certificate. Its text is for the operator.
var ErrPeer = errors.New("peer not accepted")

// Identity is a site's certificate and key, and the authority that has signed the
// certificates of all sites of the job. Replace changes all of it at once.
type Identity struct {
	files   *atomic.Pointer[files] // shared with what At and WithOwn have returned
	withOwn bool
	now     func() time.Time
}

// files is what was read from a site's files. It is immutable.
type files struct {
	own      tls.Certificate
	leaf     *x509.Certificate
	trusted  *x509.CertPool
	caFile   string
	certFile string
	peers    []string // a peer's certificate must have one of these names; nil: any
}

// Name returns the site's name in its certificate.
func (id *Identity) Name() string { return nameOf(id.leaf()) }

func (id *Identity) leaf() *x509.Certificate { return id.files.Load().leaf }

// Replace makes handshakes that begin from now on use the certificates and key of other.
// Configurations that were made before, and connections, keep what they have.
func (id *Identity) Replace(other *Identity) { id.files.Store(other.files.Load()) }

// Server returns the TLS configuration of the accepting side. protocol is the ALPN name
// that both sides must use.
func (id *Identity) Server(protocol string) *tls.Config {
	c := id.config(protocol)
	// The standard library verifies the client, and its alert tells the client what was
	// wrong; our own checks come after that.
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.ClientCAs = id.files.Load().trusted
	c.VerifyConnection = func(s tls.ConnectionState) error { return id.admit(s.PeerCertificates[0]) }
	return c
}

// Client returns the TLS configuration of the dialling side.
func (id *Identity) Client(protocol string) *tls.Config {
	c := id.config(protocol)
	// The standard library would look for the address in the certificate, but certificates
	// name sites. So the whole verification is ours.
	c.InsecureSkipVerify = true
	c.VerifyConnection = id.verifyServer
	return c
}

// Certificate returns the site's certificate with its key, for a handshake whose sides are judged
// by Judge after it.
func (id *Identity) Certificate() tls.Certificate { return id.files.Load().own }

// Judge returns nil if the certificate shown[0], with the rest of its chain, may be that of a peer
// with this use, and otherwise an error that wraps ErrPeer.
func (id *Identity) Judge(shown []*x509.Certificate, use x509.ExtKeyUsage) error {
	if len(shown) == 0 {
		return fmt.Errorf("%w: it showed no certificate", ErrPeer)
	}
	return id.verify(shown, use)
}

// WithOwn returns the same identity, which accepts the names in its own certificate in addition to
// those of the setting peers: the hosts of one site need not be among the site's peers.
func (id *Identity) WithOwn() *Identity {
	other := *id
	other.withOwn = true
	return &other
}

// config is the common part of both configurations. It has no session tickets: they would
// only skip the check of a certificate that may have expired meanwhile.
func (id *Identity) config(protocol string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{id.Certificate()},
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true,
		Time:                   id.now,
	}
}

// verifyServer does what the standard library would do, except for the name.
func (id *Identity) verifyServer(s tls.ConnectionState) error {
	return id.Judge(s.PeerCertificates, x509.ExtKeyUsageServerAuth)
}

// verify checks the certificate chain[0] by the rest of the chain.
func (id *Identity) verify(chain []*x509.Certificate, use x509.ExtKeyUsage) error {
	options := x509.VerifyOptions{
		Roots: id.files.Load().trusted, Intermediates: x509.NewCertPool(), CurrentTime: id.now(),
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

// Accepts returns nil if this side would accept the identity other, as dialler or as
// acceptor, and otherwise an error that wraps ErrPeer.
func (id *Identity) Accepts(other *Identity) error {
	theirs := other.files.Load()
	chain := []*x509.Certificate{theirs.leaf}
	for _, der := range theirs.own.Certificate[1:] {
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

func (id *Identity) admit(leaf *x509.Certificate) error {
	f := id.files.Load()
	allowed := f.peers
	if id.withOwn && allowed != nil {
		allowed = append(slices.Clone(allowed), f.leaf.DNSNames...)
	}
	if allowed == nil || slices.ContainsFunc(allowed, func(p string) bool { return slices.Contains(leaf.DNSNames, p) }) {
		return nil
	}
	return fmt.Errorf("%w: its certificate is that of %s, and the setting peers allows %s only",
		ErrPeer, describe(leaf), strings.Join(allowed, ", "))
}

func (id *Identity) blame(leaf *x509.Certificate, err error) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	now := id.now()
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate of %s was not signed by the CA in %s: all sites of a job need certificates of one CA",
			describe(leaf), id.files.Load().caFile)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return untimely(cmp.Or(invalid.Cert, leaf), now)
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return fmt.Sprintf("the certificate of %s is not for this use: it needs the extended key usages of a server and of a client", describe(leaf))
	}
	return fmt.Sprintf("the certificate of %s: %v", describe(leaf), err)
}

// untimely says that a certificate is not valid now: a site's, or that of the CA which has signed
// it.
func untimely(c *x509.Certificate, now time.Time) string {
	whose, renew := describe(c), "impi-node cert issue -renew "+nameOf(c)
	if c.IsCA {
		whose, renew = "the CA "+whose, "impi-node cert init makes another one, for all sites"
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	if now.After(c.NotAfter) {
		return fmt.Sprintf("the certificate of %s expired on %s, and it is %s: check the clock of %s; if it is right: %s", whose, at(c.NotAfter), at(now), machine(), renew)
	}
	return fmt.Sprintf("the certificate of %s is valid from %s on, and it is %s: check the clock of %s, and of where the certificate was made", whose, at(c.NotBefore), at(now), machine())
}

// machine is what this machine is called: a message about its clock may be read on others.
func machine() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "this machine"
}

func nameOf(c *x509.Certificate) string {
	if len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

func describe(c *x509.Certificate) string { return fmt.Sprintf("%q", nameOf(c)) }

// Secret returns a number that only a process with the site's key can compute, for deriving keys.
// It is the same in all processes of the site.
func (id *Identity) Secret() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(id.Certificate().PrivateKey)
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
