package proto

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// A node and a plugin that is built into it share a secret instead of exchanging certificates by
// AutoMTLS, for which the node makes a key on P-521: most of what starting a plugin costs. The
// plugin reads the secret from ControlFD if EnvControl is set.
const (
	EnvControl    = "IMPI_CONTROL_SECRET"
	ControlFD     = DescriptorFD + 1
	ControlSecret = 32 // bytes: a private key on P-256, the curve that Go has tables for at build time
)

// NewControlSecret draws a secret for one start of a plugin.
func NewControlSecret() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err == nil {
		var secret []byte
		if secret, err = key.Bytes(); err == nil {
			return secret
		}
	}
	panic(err) // the curve is one that crypto/ecdsa knows, and its randomness never fails
}

// ControlTLS makes the configuration of both ends of a control connection from their secret: the
// secret is the private key of the only certificate that either end shows and accepts.
func ControlTLS(secret []byte) (*tls.Config, error) {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), secret)
	if err != nil {
		return nil, fmt.Errorf("the secret of the control connection, of %d bytes, is no key: %w", len(secret), err)
	}
	const name = "localhost"
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, SerialNumber: big.NewInt(1),
		// Both ends are one build on one machine, for one start: no clock matters.
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	// Without randomness the signature depends on the key alone, so that both ends make the same
	// bytes.
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed}},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool, RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS13,
		// No post-quantum key exchange, which would cost as much as all the rest:
		// the socket does not leave this machine.
		CurvePreferences: []tls.CurveID{tls.X25519},
	}, nil
}
