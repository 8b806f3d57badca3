package pki

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"
)

// MakeUp makes a certificate for a server that has none. It proves nothing: the key of the job, which
// is bound to the TLS connection, does.
func MakeUp(name string) (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<35, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}
