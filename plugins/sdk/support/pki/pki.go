// Package pki makes the certificates of a job: an authority of its own, and one
// certificate per site, each good for accepting and for dialling. Keys are ECDSA
// on P-256.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// ErrPEM is reported for what should be a certificate or a key and is not.
var ErrPEM = errors.New("not a certificate or key in PEM form")

// ErrName is reported for a name that cannot stand in a certificate.
var ErrName = errors.New("not a name for a certificate")

// skew is how far apart clocks may be.
const skew = 5 * time.Minute

// Pair is a certificate and its private key, both in PEM form.
type Pair struct {
	Cert, Key []byte
}

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pair Pair
}

// NewAuthority makes an authority that is valid from a few minutes before now for
// the given time. It cannot make further authorities.
func NewAuthority(name string, now time.Time, validity time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of a CA: %w", err)
	}
	t := template(name, now, validity)
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	pair, err := sign(t, t, key, key)
	if err != nil {
		return nil, err
	}
	return Load(pair)
}

// Load returns the authority whose certificate and key are in p.
func Load(p Pair) (*Authority, error) {
	cert, err := ParseCert(p.Cert)
	if err != nil {
		return nil, err
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("%w: the certificate of %q is no CA", ErrPEM, cert.Subject.CommonName)
	}
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, fmt.Errorf("%w: the CA's key", ErrPEM)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: the CA's key: %w", ErrPEM, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%w: the CA's key is not that of its certificate", ErrPEM)
	}
	return &Authority{cert: cert, key: key, pair: p}, nil
}

// ParseCert reads the first certificate of a PEM file.
func ParseCert(b []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, ErrPEM
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPEM, err)
	}
	return cert, nil
}

// Pair returns the authority's own certificate and key.
func (a *Authority) Pair() Pair { return a.pair }

// Cert returns the authority's own certificate.
func (a *Authority) Cert() *x509.Certificate { return a.cert }

// Issue makes the certificate of a site, valid for the given time but no longer than the
// authority's own.
func (a *Authority) Issue(site string, now time.Time, validity time.Duration) (Pair, error) {
	if !ValidName(site) {
		return Pair{}, fmt.Errorf("%w: %q: use letters, digits, '-', '_' and '.'", ErrName, site)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of site %s: %w", site, err)
	}
	t := template(site, now, validity)
	t.DNSNames = []string{site}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if t.NotAfter.After(a.cert.NotAfter) {
		t.NotAfter = a.cert.NotAfter
	}
	return sign(t, a.cert, key, a.key)
}

// ValidName reports whether a site's name can be in a certificate as it is.
func ValidName(site string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return site != "" && len(site) <= 63 && strings.Trim(site, allowed) == "" && strings.Trim(site, ".") == site
}

func template(name string, now time.Time, validity time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // never fails
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: []string{"impi job"}},
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(validity),
	}
}

func sign(t, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, by)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", t.Subject.CommonName, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %s: %w", t.Subject.CommonName, err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}
